"""How does a page get pictures? One at a time, or all of them small on one sheet.

picture/3/0 · thumbs/1. Files are looked up in the atlas's own table; one picture is open at a time.
"""

import io
import math
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from attention_atlas.images.upright import upright
from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.page.answers.find import check_input, listed_input
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import image as wire
from attention_atlas.store.files import DAMAGE, damage
from attention_atlas.store.reader import StoredAtlas

LARGEST = 1024  # pixels a side of a picture that is sent
SHEET = 4096  # pixels a side of a sheet
SIDES = (16, 32, 64, 128, 256, 512)  # of a cell
_SMALL = 200_000  # pixels up to which a picture is sent as PNG
_TURNED = (5, 6, 7, 8)  # EXIF orientations that swap width and height
_ORIENTATION = 0x0112


def has_pictures(atlas: StoredAtlas) -> bool:
    return any(len(names) for names in _names(atlas))


def sheets(atlas: StoredAtlas) -> list[wire.ThumbSheet]:
    """Return the sizes in which all pictures fit on one sheet, from coarse to fine."""
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
    """Return the upright sizes and names of an input's pictures; read only the file headers."""
    row = atlas.inputs().iloc[i]
    infos = []
    for image, stored in enumerate(_list(row["images"])):
        with _opened(atlas.picture(i, image)) as opened:
            width, height = opened.size
            with damage(atlas.picture(i, image), "capture the atlas again"):
                turned = opened.getexif().get(_ORIENTATION) in _TURNED
        name = row.get("source") if image == 0 and row.get("source") else Path(stored).name
        size = (height, width) if turned else (width, height)
        infos.append(wire.PictureInfo(*size, str(name)))
    return infos


def picture(subject: Subject, number: int, image: int) -> wire.Picture:
    """Return one picture of an input, upright and small enough to be sent."""
    atlas, i = _with_pictures(subject), check_input(subject, number)
    small = _small(atlas.picture(listed_input(subject, i), image), LARGEST)
    mime, data = _encoded(small)
    return wire.Picture(i, image, mime, small.width, small.height, data)


def thumbs(subject: Subject, level: int) -> wire.Thumbs:
    """Return all pictures on one sheet."""
    atlas = _with_pictures(subject)
    known = sheets(atlas)
    if level >= len(known):
        levels = f"0 to {len(known) - 1}" if known else "none"
        raise PickError(f"there is no sheet {level} of thumbnails; there is {levels}")
    sheet = known[level]
    canvas = Image.new("RGB", (sheet.width, sheet.height), "white")
    across = sheet.width // sheet.side
    pairs = [(i, k) for i, names in enumerate(_names(atlas)) for k in range(len(names))]
    cells = np.zeros((len(pairs), 4), np.uint16)
    for cell, (i, k) in enumerate(pairs):
        small = _small(atlas.picture(i, k), sheet.side)
        x, y = cell % across * sheet.side, cell // across * sheet.side
        canvas.paste(small, (x, y))
        cells[cell] = x, y, small.width, small.height
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
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return Image.open(path)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as problem:
        most = (Image.MAX_IMAGE_PIXELS or 0) // 10**6
        raise StoreError(
            f"{path.name} has more than {most} million pixels; make it smaller"
        ) from problem
    except (*DAMAGE, UnidentifiedImageError, SyntaxError) as problem:
        raise StoreError(f"{path.name} is damaged; capture the atlas again") from problem


def _small(path: Path, side: int) -> Image.Image:
    """Read a picture at most `side` pixels wide and high; decode a JPEG no finer than needed."""
    with _opened(path) as opened:
        opened.draft("RGB", (side, side))
        try:
            picture = upright(opened)
        except (*DAMAGE, SyntaxError) as problem:
            raise StoreError(f"{path.name} is damaged; capture the atlas again") from problem
    picture.thumbnail((side, side))
    return picture


def _encoded(picture: Image.Image) -> tuple[str, npt.NDArray[np.uint8]]:
    """Encode a small picture as PNG, a large one as JPEG; return MIME type and bytes."""
    into = io.BytesIO()
    if picture.width * picture.height <= _SMALL:
        picture.save(into, "PNG")
        return "image/png", np.frombuffer(into.getvalue(), np.uint8)
    picture.save(into, "JPEG", quality=90)
    return "image/jpeg", np.frombuffer(into.getvalue(), np.uint8)
