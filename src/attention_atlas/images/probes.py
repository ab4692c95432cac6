"""Which pictures can be made whose value is known at every place?

hue, brightness   smooth gradients in eight directions, and mosaics of the same values shuffled: a
                  head that only knows places follows a gradient, but not a mosaic
gratings          waves of several frequencies and angles, one of each a picture
shapes            one shape on grey, at a place and in a colour drawn by seed

A folder of probes has its pictures and probes.parquet: picture, left, top, right, bottom (fractions
of the picture) and the values there. A capture of the folder gives each patch the mean over its box
as a column of its tokens, named `known hue` and so on.
"""

import colorsys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.api.types import is_numeric_dtype
from PIL import Image, ImageDraw

from attention_atlas.images.upright import CYCLIC, LUMA
from attention_atlas.names.errors import InputError
from attention_atlas.names.options import check_seed
from attention_atlas.store.files import write_whole
from attention_atlas.store.write import check_folder

TABLE = "probes.parquet"
KNOWN = "known "  # before the name of a value, in the tokens of an atlas
LARGEST = 2048  # pixels a side; numbers of each pixel take about a gigabyte
CELLS = 28  # a side: the grid on which values are stored
BLOCKS = 7  # a side of a mosaic
_DIRECTIONS = 8
_FREQUENCIES = (2, 4, 8, 16)  # waves across a picture
_ANGLES = 8
_SHAPES = ("disc", "square", "triangle", "ring", "cross")
_SHAPE_PICTURES = 30
_BRIGHT = 0.45  # luma that every hue of a probe has

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Probe:
    """One picture, and its values in CELLS × CELLS cells."""

    name: str
    picture: Image.Image
    values: dict[str, npt.NDArray[Any]]  # each (CELLS, CELLS)


def write_probes(kind: str, folder: Path, size: int = 224, seed: int = 0) -> int:
    """Write the probes of a kind into a folder; returns the number of pictures."""
    if kind not in PROBES:
        raise InputError(f"no probes are called {kind!r}; there are {', '.join(PROBES)}")
    if size < BLOCKS * 2:
        raise InputError(f"pictures of {size} pixels are too small; give {BLOCKS * 2} or more")
    if size > LARGEST:
        raise InputError(f"pictures of {size} pixels are too large; give at most {LARGEST}")
    check_seed(seed)
    check_folder(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / TABLE).exists():
        raise InputError(f"{folder} is not empty and has no {TABLE}; give another folder")
    edges = np.arange(CELLS + 1) / CELLS
    top, left = (
        corner.reshape(-1) for corner in np.meshgrid(edges[:-1], edges[:-1], indexing="ij")
    )
    frames = []
    for probe in PROBES[kind](size, np.random.default_rng(seed)):
        write_whole(folder / f"{probe.name}.png", partial(probe.picture.save, format="PNG"))
        columns = {
            "picture": f"{probe.name}.png", "left": left, "top": top, "right": left + 1 / CELLS,
            "bottom": top + 1 / CELLS,
        }  # fmt: skip
        values = {name: value.reshape(-1) for name, value in probe.values.items()}
        frames.append(pd.DataFrame({**columns, **values}))
    table = pd.concat(frames, ignore_index=True)
    write_whole(folder / TABLE, lambda part: table.to_parquet(part, index=False))
    return len(frames)


def read_cells(folder: Path) -> dict[str, pd.DataFrame]:
    """Read the cells of each picture with their values; empty where a folder has no such table."""
    path = folder / TABLE
    if not path.is_file():
        return {}
    try:
        frame: pd.DataFrame = pq.read_table(path).to_pandas()
        needed = ["picture", "left", "top", "right", "bottom"]
        return {str(name): part.drop(columns="picture") for name, part in frame.groupby(needed[0])}
    except (OSError, ValueError, KeyError, pa.ArrowException) as problem:
        raise InputError(f"{path} cannot be read as a table of probes: {problem}") from problem


def known_values(cells: pd.DataFrame, boxes: Floats) -> dict[str, list[Any]]:
    """Average each value over each box by area; takes the commonest where values are names."""
    edges = cells[["left", "top", "right", "bottom"]].to_numpy(np.float64)
    low = np.maximum(boxes[:, None, :2], edges[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], edges[None, :, 2:])
    area = np.nan_to_num(np.maximum(high - low, 0).prod(2))  # (N, cells)
    means: dict[str, list[Any]] = {}
    for name in cells.columns:
        if name not in ("left", "top", "right", "bottom"):
            mean = _mean if is_numeric_dtype(cells[name]) else _commonest
            means[KNOWN + str(name)] = mean(area, cells[name].to_numpy(), CYCLIC.get(str(name)))
    return means


def _mean(area: Floats, values: npt.NDArray[Any], period: float | None) -> list[Any]:
    finite = np.isfinite(values.astype(np.float64))
    shares = area * finite
    total = shares.sum(1)
    safe = np.where(total > 0, total, 1)
    plain = np.where(finite, values, 0).astype(np.float64)
    if period is None:
        means = shares @ plain / safe
    else:
        turn = 2 * np.pi / period
        means = np.arctan2(shares @ np.sin(plain * turn), shares @ np.cos(plain * turn)) / turn
        means %= period
    return list(np.where(total > 0, means, np.nan).tolist())


def _commonest(area: Floats, values: npt.NDArray[Any], _: float | None) -> list[Any]:
    names = sorted({str(value) for value in values})
    shares = np.stack([area[:, values == name].sum(1) for name in names], 1)
    best = shares.argmax(1)
    return [
        names[number] if total > 0 else None
        for number, total in zip(best, shares.sum(1), strict=True)
    ]


# The kinds ---------------------------------------------------------------------------------------


def _hue(size: int, dice: np.random.Generator) -> Iterator[Probe]:
    for name, field, cells in _fields(size, dice):
        yield Probe(name, _coloured(field), {"hue": 360 * cells % 360})


def _brightness(size: int, dice: np.random.Generator) -> Iterator[Probe]:
    for name, field, cells in _fields(size, dice):
        grey = np.rint(255 * field).astype(np.uint8)
        yield Probe(name, Image.fromarray(grey).convert("RGB"), {"brightness": cells})


def _fields(size: int, dice: np.random.Generator) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield name, values of the pixels and of the cells, 0 … 1: gradients, then mosaics."""
    for number in range(_DIRECTIONS):
        angle = 2 * np.pi * number / _DIRECTIONS
        name = f"gradient-{360 * number // _DIRECTIONS:03d}"
        yield name, _gradient(size, angle), _gradient(CELLS, angle)
    steps = np.linspace(0, 1, BLOCKS**2, endpoint=False) + 0.5 / BLOCKS**2
    for number in range(_DIRECTIONS):
        blocks = dice.permutation(steps).reshape(BLOCKS, BLOCKS)
        yield f"mosaic-{number}", _spread(blocks, size), _spread(blocks, CELLS)


def _gradient(side: int, angle: float) -> Floats:
    """Make values 0 … 1 from one edge to the other, along a direction."""
    middles = (np.arange(side) + 0.5) / side - 0.5
    along = np.cos(angle) * middles[None, :] + np.sin(angle) * middles[:, None]
    wide = abs(np.cos(angle)) + abs(np.sin(angle))
    return np.asarray(np.clip(along / wide + 0.5, 0, 1))


def _spread(blocks: Floats, side: int) -> Floats:
    block = np.arange(side) * len(blocks) // side
    return np.asarray(blocks[block[:, None], block[None, :]])


def _coloured(field: Floats) -> Image.Image:
    """Colour by hues of one luma, so that brightness tells nothing."""
    steps = np.linspace(0, 1, 721)
    table = np.array([_even(colorsys.hsv_to_rgb(float(hue % 1), 1, 1)) for hue in steps])
    step = np.rint(field % 1 * 720).astype(int)
    return Image.fromarray(np.rint(255 * table[step]).astype(np.uint8))


def _even(colour: tuple[float, float, float]) -> Floats:
    rgb = np.array(colour)
    luma = float(rgb @ LUMA)
    if luma > _BRIGHT:
        return np.asarray(rgb * _BRIGHT / luma)
    white = (_BRIGHT - luma) / (1 - luma)
    return np.asarray(rgb * (1 - white) + white)


def _gratings(size: int, dice: np.random.Generator) -> Iterator[Probe]:
    middles = (np.arange(size) + 0.5) / size
    for frequency in _FREQUENCIES:
        for number in range(_ANGLES):
            angle = 180 * number / _ANGLES
            turned = np.deg2rad(angle)
            along = np.cos(turned) * middles[None, :] + np.sin(turned) * middles[:, None]
            phase = dice.uniform(0, 2 * np.pi)
            wave = 0.5 + 0.5 * np.sin(2 * np.pi * frequency * along + phase)
            picture = Image.fromarray(np.rint(255 * wave).astype(np.uint8)).convert("RGB")
            values = {"frequency": float(frequency), "angle": angle}
            flat = {name: np.full((CELLS, CELLS), value) for name, value in values.items()}
            yield Probe(f"grating-{frequency:02d}-{angle:05.1f}", picture, flat)


def _shapes(size: int, dice: np.random.Generator) -> Iterator[Probe]:
    for number in range(_SHAPE_PICTURES):
        shape = _SHAPES[number % len(_SHAPES)]
        radius = size * dice.uniform(0.15, 0.3)
        x, y = dice.uniform(radius, size - radius, 2)
        colour = tuple(int(c) for c in dice.integers(0, 256, 3))
        inside = Image.new("L", (size, size), 0)
        _DRAWN[shape](ImageDraw.Draw(inside), x, y, radius)
        picture = Image.new("RGB", (size, size), (128, 128, 128))
        picture.paste(Image.new("RGB", (size, size), colour), mask=inside)
        share = inside.resize((CELLS, CELLS), Image.Resampling.BOX)
        covered = np.asarray(share, np.float64) / 255
        names = np.where(covered >= 0.5, shape, "ground").astype(object)
        values = {"shape": names, "covered": covered}
        yield Probe(f"shape-{number:02d}-{shape}", picture, values)


def _disc(draw: Any, x: float, y: float, r: float) -> None:
    draw.ellipse((x - r, y - r, x + r, y + r), fill=255)


def _square(draw: Any, x: float, y: float, r: float) -> None:
    draw.rectangle((x - r, y - r, x + r, y + r), fill=255)


def _triangle(draw: Any, x: float, y: float, r: float) -> None:
    draw.polygon([(x, y - r), (x + r, y + r), (x - r, y + r)], fill=255)


def _ring(draw: Any, x: float, y: float, r: float) -> None:
    _disc(draw, x, y, r)
    draw.ellipse((x - r / 2, y - r / 2, x + r / 2, y + r / 2), fill=0)


def _cross(draw: Any, x: float, y: float, r: float) -> None:
    draw.rectangle((x - r, y - r / 3, x + r, y + r / 3), fill=255)
    draw.rectangle((x - r / 3, y - r, x + r / 3, y + r), fill=255)


_DRAWN: dict[str, Callable[[Any, float, float, float], None]] = {
    "disc": _disc, "square": _square, "triangle": _triangle, "ring": _ring, "cross": _cross,
}  # fmt: skip
PROBES: dict[str, Callable[[int, np.random.Generator], Iterator[Probe]]] = {
    "hue": _hue, "brightness": _brightness, "gratings": _gratings, "shapes": _shapes,
}  # fmt: skip
