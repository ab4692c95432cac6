"""Where is the model that a person names?

`builtin:NAME` lies inside the package; an existing path is a folder or a .gguf file; whatever else
could be a hub id is one. A folder is looked at before anything is loaded from it.
"""

import re
from importlib.util import find_spec
from pathlib import Path

from attention_atlas.names.errors import ModelError

BUILTIN = Path(__file__).parent / "builtin"
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def builtin_names() -> list[str]:
    return sorted(path.parent.name for path in BUILTIN.glob("*/config.json"))


def locate(model: str | Path, gguf_file: str | None) -> tuple[str, str, str | None]:
    """Find a model; returns what transformers is asked for, its name, and the GGUF file inside."""
    text = str(model)
    if text.startswith("builtin:"):
        asked = text.removeprefix("builtin:")
        if asked not in builtin_names():
            names = ", ".join(f"builtin:{name}" for name in builtin_names()) or "none here"
            raise ModelError(f"no built-in model is called {asked!r}; there is {names}")
        return str(BUILTIN / asked), text, None
    path = Path(text).expanduser()
    if path.suffix.lower() == ".gguf" and path.is_file():
        return str(path.parent), path.name, path.name
    if path.is_dir():
        _refuse_folder_without_weights(path, gguf_file)
        return str(path), path.resolve().name, gguf_file
    if path.exists():
        raise ModelError(f"{path.name} is a file, not a model; give its folder or a .gguf file")
    if isinstance(model, Path) or not _HUB_ID.fullmatch(text) or path.suffix == ".gguf":
        raise ModelError(f"no folder is called {text}; check the path, or give a hub id")
    return text, text, gguf_file


def _refuse_folder_without_weights(folder: Path, gguf_file: str | None) -> None:
    if gguf_file:
        if not (folder / gguf_file).is_file():
            raise ModelError(f"folder {folder.name} has no file {gguf_file}; check its name")
        return
    if not (folder / "config.json").is_file():
        if (folder / "adapter_config.json").is_file():
            raise ModelError(
                f"folder {folder.name} is an adapter; give the model that it belongs to, and this "
                "folder as adapter"
            )
        raise ModelError(
            f"folder {folder.name} has no config.json, so it is not a model; "
            "give a folder written by save_pretrained"
        )
    if any(folder.glob("*.safetensors")) or (folder / "model.safetensors.index.json").is_file():
        return
    if any(folder.glob("pytorch_model*.bin")):
        raise ModelError(
            f"folder {folder.name} has only pickle weights, which can run code and are not loaded; "
            "load them yourself, then write safetensors with model.save_pretrained"
        )
    raise ModelError(
        f"folder {folder.name} has no weights; put model.safetensors beside its config.json"
    )


def refuse_gguf_without_reader(name: str) -> None:
    missing = [package for package in ("gguf", "accelerate") if find_spec(package) is None]
    if missing:
        raise ModelError(
            f"{name} is a GGUF file and {' and '.join(missing)} is not installed; "
            "run: pip install attention-atlas[gguf]"
        )
