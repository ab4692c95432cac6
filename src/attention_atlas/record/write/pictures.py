"""Where in the atlas are an input's pictures?

They are copied unchanged, so that the atlas can be shown on any machine.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from attention_atlas.models.inputs import Input
from attention_atlas.models.media import open_image
from attention_atlas.store.files import write_whole


def picture_names(number: int, given: Input) -> list[str]:
    """Return the file names of an input's pictures inside the atlas."""
    return [
        f"images/{number:06d}-{index}{_suffix(image)}" for index, image in enumerate(given.images)
    ]


def save_pictures(folder: Path, number: int, given: Input) -> None:
    """Write the pictures of one input into the atlas."""
    for name, image in zip(picture_names(number, given), given.images, strict=True):
        write_whole(folder / name, partial(_save, image))


def _suffix(image: Any) -> str:
    return Path(image).suffix.lower() if isinstance(image, str | Path) else ".png"


def _save(image: Any, target: Path) -> None:
    if isinstance(image, str | Path):
        shutil.copyfile(image, target)
    else:
        open_image(image).save(target, "PNG")
