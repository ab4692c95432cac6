"""Two atlases to look at right after install, with no network.

`builtin:gpt` and `builtin:bert` over some two hundred sentences written for it. Their vectors would
weigh 40 MB and are captured in seconds; their maps weigh 5 MB and take minutes. So the maps come
with the package, and the vectors are captured at the first start and kept.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import platformdirs

from attention_atlas.names.errors import StoreError
from attention_atlas.store.reader import StoredAtlas

DATA = Path(__file__).parent / "demo_atlas"
MODELS = ("builtin:gpt", "builtin:bert")


def sentences() -> list[dict[str, str]]:
    """Each with what it was written for, which can colour the map."""
    found, topic = [], ""
    for line in (DATA / "sentences.txt").read_text("utf-8").splitlines():
        if line.startswith("= "):
            topic = line.removeprefix("= ")
        elif line:
            found.append({"text": line, "topic": topic})
    return found


def demo_atlases(say: Callable[[str], None] = lambda text: None) -> list[StoredAtlas]:
    """Opened if they are there, else captured."""
    home = _home()
    made = []
    for model in MODELS:
        path = home / f"{_short(model)}.atlas"
        try:
            made.append(StoredAtlas.open(path))
        except StoreError:
            say(f"capturing {model} on {len(sentences())} sentences, this once")
            made.append(_capture(model, path))
    return made


def _capture(model: str, path: Path) -> StoredAtlas:
    """Captured beside its place and moved there whole, with its maps."""
    from attention_atlas.record.write.capture import capture

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        fresh = Path(place) / path.name
        capture(model, sentences(), path=fresh, progress=False)
        (fresh / "layouts").mkdir()
        for file in DATA.glob(f"{_short(model)}.*.safetensors"):
            shutil.copyfile(file, fresh / "layouts" / file.name.removeprefix(f"{_short(model)}."))
        shutil.rmtree(path, ignore_errors=True)
        fresh.rename(path)
    return StoredAtlas.open(path)


def _short(model: str) -> str:
    return model.removeprefix("builtin:")


def _home() -> Path:
    """The person's cache, or a temporary folder where there is none to write to.

    Named after the version and the sentences, so that an old one is never taken for a new one.
    """
    key = hashlib.sha256((DATA / "sentences.txt").read_bytes()).hexdigest()[:8]
    cache = platformdirs.user_cache_path("attention-atlas", appauthor=False)
    home = cache / f"demo-{version('attention-atlas')}-{key}"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="attention-atlas-"))
    return home
