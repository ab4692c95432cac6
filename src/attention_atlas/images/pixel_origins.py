"""Which part of which picture does each pixel of the model's tensors show?

Processors stretch, crop, pad, tile and flatten in a hundred ways. None of them is known here by
name: a processor is given pictures of the same sizes in which a pixel's value is its own place, and
what comes out says where each value came from. A black and a white picture tell how values are
scaled, and what is padding: that is the same in both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Floats = npt.NDArray[np.float64]
Size = tuple[int, int]  # width, height
Make = Callable[[list[Image.Image]], Mapping[str, Any]]  # what the processor gives for pictures
_NAMES = ("pixel_values", "flattened_patches")
_NEAR = 2e-3  # of a picture: as near to its edge as a fit through 256 steps can tell


@dataclass(frozen=True)
class Axis:
    """One axis of a frame: where in the picture each of its pixels lies, and which are no pads."""

    start: float  # fraction of the picture at the near edge of pixel 0
    step: float  # per pixel
    first: int  # first and last + 1 of the pixels that show something
    last: int

    def span(self, low: int, high: int) -> tuple[float, float]:
        """Get pixels low … high − 1 as fractions of the picture; NaN where all are padding."""
        if high <= self.first or low >= self.last:
            return np.nan, np.nan
        return self.start + self.step * low, self.start + self.step * high


@dataclass(frozen=True)
class Frame:
    """One rectangle of pixels as the model gets it: a whole picture or a tile."""

    image: int  # -1: nothing but padding
    height: int
    width: int
    x: Axis
    y: Axis

    def box(self, top: int, left: int, bottom: int, right: int) -> tuple[float, ...]:
        """Get left, top, right, bottom as fractions of the picture; NaN where nothing shows."""
        across, down = self.x.span(left, right), self.y.span(top, bottom)
        if self.image < 0 or np.isnan([*across, *down]).any():
            return (np.nan,) * 4
        return across[0], down[0], across[1], down[1]


@dataclass(frozen=True)
class Patches:
    """Patches that come flattened, in the order the processor gives them."""

    image: npt.NDArray[np.int64]  # (P,) -1: padding
    row: npt.NDArray[np.int64]
    column: npt.NDArray[np.int64]
    box: Floats  # (P, 4)


@dataclass(frozen=True)
class Shown:
    """What an input's tensors show: frames of pixels, or patches."""

    frames: tuple[Frame, ...]
    patches: Patches | None


def shown(make: Make, sizes: Sequence[Size]) -> Shown | None:
    """Find what the tensors show for pictures of these sizes; None where no pixels are found."""
    black = _pixels(make([_flat(size, 0) for size in sizes]))
    if black is None or not sizes:
        return None
    white = _pixels(make([_flat(size, 255) for size in sizes]))
    if white is None or white.shape != black.shape:
        return None

    def decoded(pictures: list[Image.Image]) -> Floats:
        values = _pixels(make(pictures))
        assert values is not None and black is not None and white is not None
        span = white - black
        shows = np.abs(span) > 1e-4 * max(float(np.abs(span).max()), 1e-6)
        return np.where(shows, (values - black) / np.where(shows, span, 1), np.nan)

    x = decoded([_ramp(size, 0) for size in sizes])
    y = decoded([_ramp(size, 1) for size in sizes])
    which = np.where(np.isnan(x), np.nan, 0.0)
    if len(sizes) > 1:
        levels = [round(255 * (k + 1) / (len(sizes) + 1)) for k in range(len(sizes))]
        grey = decoded([_flat(size, level) for size, level in zip(sizes, levels, strict=True)])
        which = grey * (len(sizes) + 1) - 1
    if x.ndim >= 4:
        return Shown(tuple(_frames(x, y, which, sizes)), None)
    return Shown((), _patches(x, y, which))


def whole(shape: Sequence[int]) -> Shown | None:
    """Treat each frame of ready-made pixels as its own picture: nothing more is known."""
    if len(shape) < 4:
        return None
    height, width = shape[-2:]
    count = int(np.prod(shape[:-3]))
    axes = [Axis(0.0, 1 / size, 0, size) for size in (width, height)]
    return Shown(tuple(Frame(i, height, width, *axes) for i in range(count)), None)


# Pictures whose pixels are their places ----------------------------------------------------------


def _flat(size: Size, level: int) -> Image.Image:
    return Image.new("RGB", size, (level,) * 3)


def _ramp(size: Size, axis: int) -> Image.Image:
    """Make a ramp with equal channels, so that their order in the output does not matter."""
    line = np.rint((np.arange(size[axis]) + 0.5) / size[axis] * 255).astype(np.uint8)
    grey = Image.fromarray(line[None, :] if axis == 0 else line[:, None])
    return grey.resize(size, Image.Resampling.NEAREST).convert("RGB")


def _pixels(batch: Mapping[str, Any]) -> Floats | None:
    tensor = next((batch[name] for name in _NAMES if name in batch), None)
    if tensor is None or not hasattr(tensor, "shape"):
        return None
    values = np.asarray(tensor, np.float64)
    return values if values.ndim >= 2 else None


# Frames ------------------------------------------------------------------------------------------


def _frames(x: Floats, y: Floats, which: Floats, sizes: Sequence[Size]) -> list[Frame]:
    height, width = x.shape[-2:]
    flat = [
        values.reshape(-1, *values.shape[-3:]) for values in (x, y, which)
    ]  # (F, C, height, width)
    frames = []
    for across, down, number in zip(*flat, strict=True):
        shows = ~np.isnan(across).all(0)
        if not shows.any():
            nothing = Axis(0.0, 0.0, 0, 0)
            frames.append(Frame(-1, height, width, nothing, nothing))
            continue
        image = int(np.rint(np.nanmedian(number)))
        size = sizes[image]
        frames.append(
            Frame(
                image, height, width, _fit(across, shows, 0, size[0]), _fit(down, shows, 1, size[1])
            )
        )
    return frames


def _fit(places: Floats, shows: npt.NDArray[np.bool_], axis: int, pixels: int) -> Axis:
    """Fit a line through the places of the pixels of one axis.

    The outermost are left out: half a pixel of the original next to its edge is not interpolated.
    """
    lines = np.flatnonzero(shows.any(axis))
    first, last = int(lines[0]), int(lines[-1]) + 1
    part = places[:, :, first:last] if axis == 0 else places[:, first:last].transpose(0, 2, 1)
    means = np.nanmean(part, axis=(0, 1))
    edge = 0.5 / pixels + 1.5 / 255
    inner = (means > edge) & (means < 1 - edge)
    if len(means) > 8:
        inner[[0, -1]] = False
    if inner.sum() >= 2:
        middles = np.arange(first, last)[inner] + 0.5
        step, start = np.polyfit(middles, means[inner], 1)
        if step > 1e-6:
            low, high = start + step * first, start + step * last
            if abs(low) > _NEAR or abs(high - 1) > _NEAR:
                return Axis(float(start), float(step), first, last)
    step = 1 / (last - first)
    return Axis(-first * step, step, first, last)


# Patches -----------------------------------------------------------------------------------------


def _patches(x: Floats, y: Floats, which: Floats) -> Patches:
    x, y, which = (values.reshape(-1, values.shape[-1]) for values in (x, y, which))  # (P, values)
    count = len(x)
    image = np.full(count, -1)
    shows = ~np.isnan(x).all(1)
    image[shows] = np.rint(np.nanmedian(which[shows], axis=1)).astype(int)
    row, column, box = np.full(count, -1), np.full(count, -1), np.full((count, 4), np.nan)
    for number in np.unique(image[shows]):
        patches = np.flatnonzero(image == number)
        columns, left, right = _lines(x[patches])
        rows, top, bottom = _lines(y[patches])
        box[patches] = np.stack([left, top, right, bottom], 1)
        if len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(patches):
            row[patches], column[patches] = rows, columns
    return Patches(image, row, column, box)


def _lines(places: Floats) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Find the column (or row) of each patch, and where it begins and ends."""
    middles = np.nanmean(places, axis=1)
    wide = float(np.median(np.nanmax(places, axis=1) - np.nanmin(places, axis=1)))
    order = np.argsort(middles, kind="stable")
    steps = np.diff(middles[order]) > max(wide / 2, 1e-3)
    line = np.empty(len(middles), np.int64)
    line[order] = np.concatenate([[0], np.cumsum(steps)])
    count = int(line.max()) + 1
    centres = np.array([middles[line == k].mean() for k in range(count)])
    if count == 1:
        return line, np.zeros(len(line)), np.ones(len(line))
    step, start = np.polyfit(np.arange(count), centres, 1)
    low, high = start - step / 2, start + step * (count - 0.5)
    if abs(low) < max(_NEAR, step / 8) and abs(high - 1) < max(_NEAR, step / 8):
        start, step = 0.5 / count, 1 / count
    return line, start + step * (line - 0.5), start + step * (line + 0.5)
