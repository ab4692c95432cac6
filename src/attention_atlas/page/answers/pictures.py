"""Pictures of an atlas as a page needs them: one at a time, or all of them small on one sheet.

picture/3/0 · thumbs/1. Files are looked up in the atlas's own table; one picture is open at a time.
"""

import io
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from attention_atlas.images.upright import upright
from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.page.answers.find import check_input
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import image as wire
from attention_atlas.store.reader import StoredAtlas

LARGEST = 1024  # pixels a side of a picture that is sent
SHEET = 4096  # pixels a side of a sheet
SIDES = (16, 32, 64, 128, 256, 512)  # of a cell
_SMALL = 200_000  # pixels up to which a picture is sent without loss
_TURNED = (5, 6, 7, 8)  # EXIF orientations that swap width and height
_ORIENTATION = 0x0112


def has_pictures(atlas: StoredAtlas) -> bool:
    return any(len(names) for names in _names(atlas))


def sheets(atlas: StoredAtlas) -> list[wire.ThumbSheet]:
    """The sizes in which all pictures fit on one sheet, from coarse to fine."""
    count = sum(len(names) for names in _names(atlas))
    if not count:
        return []
    across = math.ceil(math.sqrt(count))
    down = math.ceil(count / across)
    return [
        wire.ThumbSheet(side, across * side, down * side)
        for side in SIDES
        if across * side <= SHEET
    ]


def picture_infos(atlas: StoredAtlas, i: int) -> list[wire.PictureInfo]:
    """The pictures of one input: their sizes, upright, without reading more than their heads."""
    row = atlas.inputs().iloc[i]
    infos = []
    for image, stored in enumerate(_list(row["images"])):
        with _opened(atlas.picture(i, image)) as opened:
            width, height = opened.size
            turned = opened.getexif().get(_ORIENTATION) in _TURNED
        name = row.get("source") if image == 0 and row.get("source") else Path(stored).name
        size = (height, width) if turned else (width, height)
        infos.append(wire.PictureInfo(*size, str(name)))
    return infos


def picture(subject: Subject, number: int, image: int) -> wire.Picture:
    """Return one picture of an input, upright and small enough to be sent."""
    atlas, i = _with_pictures(subject), check_input(subject, number)
    made = _small(atlas.picture(i, image), LARGEST)
    mime, data = _encoded(made)
    return wire.Picture(i, image, mime, made.width, made.height, data)


def thumbs(subject: Subject, level: int) -> wire.Thumbs:
    """Return all pictures on one sheet."""
    atlas = _with_pictures(subject)
    known = sheets(atlas)
    if level >= len(known):
        there = f"0 to {len(known) - 1}" if known else "none"
        raise PickError(f"there is no sheet {level} of thumbnails; there is {there}")
    sheet = known[level]
    canvas = Image.new("RGB", (sheet.width, sheet.height), "white")
    across = sheet.width // sheet.side
    pairs = [(i, k) for i, names in enumerate(_names(atlas)) for k in range(len(names))]
    cells = np.zeros((len(pairs), 4), np.uint16)
    for at, (i, k) in enumerate(pairs):
        small = _small(atlas.picture(i, k), sheet.side)
        x, y = at % across * sheet.side, at // across * sheet.side
        canvas.paste(small, (x, y))
        cells[at] = x, y, small.width, small.height
    mime, data = _encoded(canvas)
    numbers = np.array(pairs, np.uint32).reshape(-1, 2)
    return wire.Thumbs(
        level, mime, sheet.width, sheet.height, data, numbers[:, 0],
        numbers[:, 1].astype(np.uint16), cells,
    )  # fmt: skip


def _with_pictures(subject: Subject) -> StoredAtlas:
    if not isinstance(subject, StoredAtlas) or not has_pictures(subject):
        raise PickError("these inputs have no pictures; capture some: aa.capture(model, folder)")
    return subject


def _names(atlas: StoredAtlas) -> list[list[str]]:
    return [_list(names) for names in atlas.inputs()["images"]]


def _list(names: object) -> list[str]:
    return [] if names is None else list(names)  # type: ignore[call-overload]


def _opened(path: Path) -> Image.Image:
    try:
        return Image.open(path)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as problem:
        raise StoreError(f"{path.name} is damaged; capture the atlas again") from problem


def _small(path: Path, side: int) -> Image.Image:
    """At most so many pixels a side; a JPEG is read no finer than that takes."""
    with _opened(path) as opened:
        opened.draft("RGB", (side, side))
        try:
            made = upright(opened)
        except (OSError, SyntaxError, ValueError) as problem:
            raise StoreError(f"{path.name} is damaged; capture the atlas again") from problem
    made.thumbnail((side, side))
    return made


def _encoded(made: Image.Image) -> tuple[str, npt.NDArray[np.uint8]]:
    """Small ones as they are, large ones as people do not see the difference."""
    into = io.BytesIO()
    if made.width * made.height <= _SMALL:
        made.save(into, "PNG")
        return "image/png", np.frombuffer(into.getvalue(), np.uint8)
    made.save(into, "JPEG", quality=90)
    return "image/jpeg", np.frombuffer(into.getvalue(), np.uint8)
