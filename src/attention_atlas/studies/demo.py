"""How does the demo get its two atlases without a network?

`builtin:gpt` and `builtin:bert` run over about two hundred sentences written for it. Their vectors
take 40 MB and seconds to capture; their maps take 5 MB and minutes to make. So the maps come with
the package, and the vectors are captured at the first start and kept.
"""

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import platformdirs

from attention_atlas.names.errors import StoreError
from attention_atlas.store.maps import read_map, write_map
from attention_atlas.store.reader import StoredAtlas

DATA = Path(__file__).parent / "demo_atlas"
MODELS = ("builtin:gpt", "builtin:bert")


def sentences() -> list[dict[str, str]]:
    """Read the sentences; returns each with its topic, which can colour the map."""
    rows, topic = [], ""
    for line in (DATA / "sentences.txt").read_text("utf-8").splitlines():
        if line.startswith("= "):
            topic = line.removeprefix("= ")
        elif line:
            rows.append({"text": line, "topic": topic})
    return rows


def demo_atlases(say: Callable[[str], None] = lambda text: None) -> list[StoredAtlas]:
    """Open the atlases of the demo; captures them at the first start."""
    home = _home()
    atlases = []
    for model in MODELS:
        path = home / f"{_short(model)}.atlas"
        try:
            atlases.append(StoredAtlas.open(path))
        except StoreError:
            say(f"capturing {model} on {len(sentences())} sentences, only this time")
            atlases.append(_capture(model, path))
    return atlases


def _capture(model: str, path: Path) -> StoredAtlas:
    """Capture in a temporary folder, add the maps, and move the whole atlas to `path`."""
    from attention_atlas.record.write.capture import capture

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        fresh = Path(place) / path.name
        capture(model, sentences(), path=fresh, progress=False)
        for file in DATA.glob(f"{_short(model)}.*.safetensors"):
            name = file.name.removeprefix(f"{_short(model)}.")
            write_map(fresh / "layouts" / name, read_map(file))  # sealed
        shutil.rmtree(path, ignore_errors=True)
        fresh.rename(path)
    return StoredAtlas.open(path)


def _short(model: str) -> str:
    return model.removeprefix("builtin:")


def _home() -> Path:
    """Get the folder of the demo: in the user's cache, or temporary if that cannot be written to.

    Its name has the version and a hash of sentences and maps, so that an old one is never used.
    """
    parts = (file.read_bytes() for file in sorted(DATA.iterdir()) if file.is_file())
    key = hashlib.sha256(b"".join(parts)).hexdigest()[:8]
    cache = platformdirs.user_cache_path("attention-atlas", appauthor=False)
    home = cache / f"demo-{version('attention-atlas')}-{key}"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="attention-atlas-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home
