"""Writes the maps of the demo that come with the package: python -m training.demo

To be run again when the built-in models, the sentences or the layout change.
"""

import shutil
import tempfile
from pathlib import Path

from attention_atlas.studies.build import Wanted, build
from attention_atlas.studies.demo import DATA, MODELS, sentences

MAPS = Wanted(methods=("umap",), dims=(2, 3))


def main() -> None:
    for model in MODELS:
        name = model.removeprefix("builtin:")
        with tempfile.TemporaryDirectory() as place:
            atlas = build(model, sentences(), Path(place) / "x.atlas", MAPS)
            for file in sorted((atlas.path / "layouts").glob("*.safetensors")):
                target = DATA / f"{name}.{file.name}"
                shutil.copyfile(file, target)
                print(target.name, target.stat().st_size)


if __name__ == "__main__":
    main()
