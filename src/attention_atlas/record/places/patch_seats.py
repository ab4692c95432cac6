"""Where in the pictures are the tokens of a vision tower?

This follows from the config (patch size, registers), the modules that ran (windows and their shift)
and the number of tokens. If these do not agree, tokens get no seat: better none than a wrong one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from attention_atlas.images.pixel_origins import Frame, Patches, Shown

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_STAGES = 7  # the most stages; each stage halves the picture
_STAGED = ("depths", "hidden_sizes")  # lists in configs of models that merge patches by stage
_STRIDES = (4, 2, 8, 16, 32, 64, 128)  # tried if a config has no patch size


@dataclass(frozen=True)
class Seats:
    """The place of each of N tokens; without one, image, row and column are -1 and the box NaN."""

    image: Ints
    row: Ints
    column: Ints
    box: Floats  # (N, 4) left, top, right, bottom as fractions of the picture
    names: list[str]  # what each token is called
    special: list[bool]  # class and register tokens


@dataclass(frozen=True)
class Windows:
    """The windows of a layer: their side in tokens (0: no windows), and how far they are rolled."""

    side: int
    shift: int


def windows_of(model: nn.Module, path: str, module: str) -> Windows | None:
    """Return the windows of the layer that a module of a tower belongs to, or None."""
    inside = module.removeprefix(path).lstrip(".").split(".") if module.startswith(path) else []
    for end in range(len(inside), 0, -1):
        name = ".".join([*([path] if path else []), *inside[:end]])
        part: Any = model.get_submodule(name)
        side = getattr(part, "window_size", None)
        if isinstance(side, int) and not isinstance(side, bool):
            shift = getattr(part, "shift_size", 0)
            return Windows(side, int(shift))
    return None


def tower_seats(model: nn.Module, path: str, module: str, n: int, shown: Shown) -> Seats | None:
    """Return the seats of a tower's n tokens; None if the numbers do not agree."""
    if shown.patches is not None:
        return _of_patches(shown.patches) if len(shown.patches.image) == n else None
    config = _config(model, path)
    windows = windows_of(model, path, module)
    real = tuple(frame for frame in shown.frames if frame.image >= 0)
    for frames in (real, shown.frames):
        if not frames or n % len(frames):
            continue
        each = [_of_frame(config, windows, n // len(frames), frame) for frame in frames]
        seated = [seats for seats in each if seats is not None]
        if len(seated) == len(frames):
            return joined(seated)
    return None


def base_cells(model: nn.Module, path: str, shown: Shown) -> tuple[Seats, list[Any]] | None:
    """Return the seats of all first-stage patches, and each patch's index in the pixel tensor.

    Patches are in rows. The tensor is seen as frames (F, C, height, width), or patches (P, values).
    """
    if shown.patches is not None:
        return _of_patches(shown.patches), list(range(len(shown.patches.image)))
    config = _config(model, path)
    if patch_size(config) is None:
        return None
    parts: list[Seats] = []
    pixels: list[Any] = []
    for number, frame in enumerate(shown.frames):
        if frame.image < 0:
            continue
        rows, columns, (high, wide) = next(grids(config, frame))
        cells = _row_by_row(rows, columns)
        parts.append(_seats(frame, cells, (high, wide), []))
        pixels += [
            (number, slice(None), slice(r * high, (r + 1) * high), slice(c * wide, (c + 1) * wide))
            for r, c in zip(*cells, strict=True)
        ]
    return (joined(parts), pixels) if parts else None


def joined(parts: list[Seats]) -> Seats:
    """Join seats in order; return them with names that start with their number if several."""
    several = len(parts) > 1
    names = [
        f"{number}:{name}" if several else name
        for number, part in enumerate(parts)
        for name in part.names
    ]
    image, row, column, box = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("image", "row", "column", "box")
    )
    return Seats(image, row, column, box, names, [flag for part in parts for flag in part.special])


def patch_size(config: Any) -> tuple[int, int] | None:
    """Return height and width of a patch in pixels, from the config or one inside it, or None."""
    inner = (getattr(config, name, None) for name in ("vision_config", "encoder"))
    for candidate in (config, *inner):
        size = getattr(candidate, "patch_size", None)
        if isinstance(size, int) and not isinstance(size, bool):
            return size, size
        if isinstance(size, list | tuple) and size and all(isinstance(s, int) for s in size):
            return int(size[-2 if len(size) > 1 else 0]), int(size[-1])
    return None


# One frame ---------------------------------------------------------------------------------------


def _of_frame(config: Any, windows: Windows | None, n: int, frame: Frame) -> Seats | None:
    for rows, columns, stride in grids(config, frame):
        if windows is not None and windows.side:
            cut = _in_windows(windows, rows, columns)
            if len(cut[0]) == n:
                return _seats(frame, cut, stride, [])
        for names in _before(config):
            if len(names) + rows * columns == n:
                return _seats(frame, _row_by_row(rows, columns), stride, names)
    return None


def grids(config: Any, frame: Frame) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Yield the rows, the columns and the size in pixels of the patches of each stage."""
    patch = patch_size(config)
    if patch is None:
        for stride in _STRIDES:
            yield -(-frame.height // stride), -(-frame.width // stride), (stride, stride)
        return
    yield frame.height // patch[0], frame.width // patch[1], patch
    rows, columns = -(-frame.height // patch[0]), -(-frame.width // patch[1])
    staged = any(isinstance(getattr(config, name, None), list | tuple) for name in _STAGED)
    for stage in range(_STAGES if staged else 1):
        yield rows, columns, (patch[0] << stage, patch[1] << stage)
        rows, columns = -(-rows // 2), -(-columns // 2)


def _before(config: Any) -> Iterator[list[str]]:
    """Yield possible tokens before the patches: class, distillation and register tokens."""
    registers = getattr(config, "num_register_tokens", 0) or 0
    named = [f"[REG{number + 1}]" for number in range(registers)]
    yield []
    yield ["[CLS]", *named]
    if registers:
        yield named
        yield ["[CLS]"]
    yield ["[CLS]", "[DIST]", *named]


def _row_by_row(rows: int, columns: int) -> tuple[Ints, Ints]:
    row, column = np.divmod(np.arange(rows * columns), max(columns, 1))
    return row, column


def _in_windows(windows: Windows, rows: int, columns: int) -> tuple[Ints, Ints]:
    """Return row and column of each token, window by window, rolled back; -1 for padding."""
    side = min(windows.side, rows, columns) if windows.shift == 0 else windows.side
    high, wide = (-(-size // side) * side for size in (rows, columns))
    row, column = np.meshgrid(np.arange(high), np.arange(wide), indexing="ij")
    row, column = (row + windows.shift) % high, (column + windows.shift) % wide
    cut = [
        grid.reshape(high // side, side, wide // side, side).transpose(0, 2, 1, 3).reshape(-1)
        for grid in (row, column)
    ]
    pad = (cut[0] >= rows) | (cut[1] >= columns)
    return np.where(pad, -1, cut[0]), np.where(pad, -1, cut[1])


def _seats(
    frame: Frame, cells: tuple[Ints, Ints], stride: tuple[int, int], before: list[str]
) -> Seats:
    none = [-1] * len(before)
    row, column = (np.concatenate([none, numbers]).astype(np.int64) for numbers in cells)
    box = np.full((len(row), 4), np.nan)
    for place in np.flatnonzero(row >= 0):
        top, left = int(row[place]) * stride[0], int(column[place]) * stride[1]
        box[place] = frame.box(top, left, top + stride[0], left + stride[1])
    names = [f"{r},{c}" if r >= 0 else "pad" for r, c in zip(row, column, strict=True)]
    names[: len(before)] = before
    special = [index < len(before) for index in range(len(row))]
    image = np.where(row >= 0, frame.image, -1)
    return Seats(image, row, column, box, names, special)


def _of_patches(patches: Patches) -> Seats:
    pairs = zip(patches.row, patches.column, patches.image, strict=True)
    several = len(set(patches.image[patches.image >= 0])) > 1
    names = [f"{i}:{r},{c}" if several else f"{r},{c}" for r, c, i in pairs]
    names = [name if i >= 0 else "pad" for name, i in zip(names, patches.image, strict=True)]
    plain = [False] * len(names)
    return Seats(patches.image, patches.row, patches.column, patches.box, names, plain)


def _config(model: nn.Module, path: str) -> Any:
    owner: Any = model
    for name in path.split(".") if path else []:
        owner = getattr(owner, name, owner)
    return getattr(owner, "config", None) or getattr(model, "config", None)
