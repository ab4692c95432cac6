"""Which links of an input are sent at once?

A small input sends all links exactly, a larger one all links rounded, and the largest only the
strongest keys of every row with the weight of the rest, so that a page of 512 tokens stays a few
megabytes and says what it does not show. Rounded numbers are sent as square roots (`roots.py`): of
weights in steps of 1, of what is moved and of contributions in steps of the largest of their row,
since these can be above 1. Of contributions, which have signs, the strongest are those farthest
from zero.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.roots import Roots, largest_sizes, to_roots
from attention_atlas.page.answers.subject import Weighted, Windowed
from attention_atlas.page.wire.constants import LARGEST_ANSWER, UNIT
from attention_atlas.page.wire.text import Edges
from attention_atlas.store.cores import each
from attention_atlas.store.manifest import Layer
from attention_atlas.store.rows import LARGEST, Float32

BUDGET = 6_000_000  # bytes of one packet
EXACT = 1_000_000  # bytes up to which nothing is rounded; more would delay the page
FEWEST = 16  # links per row, even beyond the budget
_SLACK = 1e-3
# Numbers up to which one core makes them all: several would hand Python's lock to each other so
# often that together they take half as long again, and a browser waits for a core.
_SHORT = 2**22

Shown = Literal["weights", "moved", "contribution"]


def make_edges(
    subject: Weighted, input: int, tower: str, layers: Sequence[int], of: int = 0
) -> Edges:
    """Return the links of some layers of an input; each core holds a part of one layer at a time.

    of  number of layers that share the budget, if more than these
    """
    heads, n, m = subject.shape(input, layers[0], tower)
    rows = heads * n * max(of, len(layers))
    if rows * m * 2 > BUDGET:
        k = min(m, max(FEWEST, BUDGET // (rows * 4)))
        return _strongest(subject, input, tower, layers, k)
    return _whole(subject, input, tower, layers, rounded=rows * m * 4 > EXACT)


def shown_of(subject: object) -> Shown:
    """Return what the numbers of a subject are; only weights sum to one in a row."""
    shown: Shown = getattr(subject, "how", "weights")
    return shown


def is_signed(subject: object) -> bool:
    """Tell whether the numbers of a subject may be below zero."""
    return shown_of(subject) == "contribution"


Window = tuple[tuple[int, int], tuple[int, int]]  # first and last row, first and last column


def window_edges(subject: Windowed, input: int, tower: str, layer: Layer, window: Window) -> Edges:
    """Return the links between some rows and some columns of all heads of a layer."""
    (top, bottom), (left, right) = window
    n, m = bottom - top + 1, right - left + 1
    if layer.heads * n * m > LARGEST_ANSWER:
        raise PickError(
            f"this window has {layer.heads} × {n} × {m} weights; ask for at most {LARGEST_ANSWER}"
        )
    k = min(m, max(FEWEST, BUDGET // (layer.heads * n * 4)))
    rows, columns = range(top, bottom + 1), range(left, right + 1)
    part = subject.window(input, layer.layer, tower, rows, columns).reshape(-1, m)
    index, weight, rest, total = top_k(part, k, is_signed(subject))
    shown = shown_of(subject)
    beyond = rest + np.maximum(1 - total, 0) if shown == "weights" else rest
    roots, peak = _rounded(weight, shown)
    return Edges(
        input, tower, [layer.layer], [layer.heads], [n], [m], k, index.astype(np.uint32),
        roots, _left_out(beyond, shown), None, top, left, shown, peak,
    )  # fmt: skip


def _whole(
    subject: Weighted, input: int, tower: str, layers: Sequence[int], rounded: bool
) -> Edges:
    shapes, shown = [subject.shape(input, layer, tower) for layer in layers], shown_of(subject)
    ends, k = np.cumsum([heads * n for heads, n, _ in shapes]), max(shape[2] for shape in shapes)
    two_bytes = np.int16 if is_signed(subject) else np.uint16
    weight = np.zeros((ends[-1], k), two_bytes if rounded else np.float32)

    def fill(place: int) -> tuple[Float32, Float32 | None]:
        """Write the numbers of a layer; return the sums and the largest of its rows (R,)."""
        heads, n, m = shapes[place]
        whole = subject.rows(input, layers[place], tower).reshape(-1, m)
        sent, peak = _rounded(whole, shown) if rounded else (whole, None)
        weight[ends[place] - heads * n : ends[place], :m] = sent
        return whole.sum(axis=1) if shown == "weights" else np.zeros(0, np.float32), peak

    if weight.size <= _SHORT:
        done = [fill(place) for place in range(len(layers))]
    else:
        done = each(fill, range(len(layers)))
    sums, peaks = zip(*done, strict=True)
    return Edges(
        input, tower, list(layers), *_sizes(shapes), k, None, weight,
        np.zeros(len(weight), np.uint16),
        _uneven_sums(np.concatenate(sums)) if shown == "weights" else None, of=shown,
        peak=None if peaks[0] is None else np.concatenate(peaks),
    )  # fmt: skip


def _strongest(subject: Weighted, input: int, tower: str, layers: Sequence[int], k: int) -> Edges:
    shapes, shown = [subject.shape(input, layer, tower) for layer in layers], shown_of(subject)
    wanted = [
        (layer, *part)
        for layer, shape in zip(layers, shapes, strict=True)
        for part in _parts(*shape)
    ]

    def strongest(part: tuple[int, range, range]) -> tuple[npt.NDArray[Any], ...]:
        layer, heads, rows = part
        found = subject.rows(input, layer, tower, heads, rows)
        return top_k(found.reshape(-1, found.shape[2]), k, is_signed(subject))

    parts = each(strongest, wanted)
    index, weight, rest, total = (np.concatenate(column) for column in zip(*parts, strict=True))
    widest = max(shape[2] for shape in shapes)
    roots, peak = _rounded(weight, shown)
    return Edges(
        input, tower, list(layers), *_sizes(shapes), k,
        index.astype(np.uint16 if widest <= 2**16 else np.uint32), roots, _left_out(rest, shown),
        _uneven_sums(total) if shown == "weights" else None, of=shown, peak=peak,
    )  # fmt: skip


def _parts(heads: int, n: int, m: int) -> Iterator[tuple[range, range]]:
    """Yield heads and rows of a layer that fit into memory together, in the order of a packet."""
    if heads * n * m <= LARGEST:
        yield range(heads), range(n)
        return
    tall = max(1, LARGEST // m)
    for head in range(heads):
        for row in range(0, n, tall):
            yield range(head, head + 1), range(row, min(row + tall, n))


def top_k(
    rows: Float32, k: int, signed: bool = False
) -> tuple[npt.NDArray[np.intp], Float32, Float32, Float32]:
    """Return keys (R, k) and weights (R, k), strongest first, weight left out (R,), sum (R,)."""
    m, sizes = rows.shape[1], np.abs(rows) if signed else rows
    total = sizes.sum(axis=1)
    keys = np.argpartition(sizes, m - k, axis=1)[:, m - k :] if k < m else _every(rows)
    order = np.argsort(-np.take_along_axis(sizes, keys, axis=1), axis=1, kind="stable")
    index = np.take_along_axis(keys, order, axis=1)
    top = np.take_along_axis(rows, index, axis=1)
    rest = np.maximum(total - np.abs(top).sum(axis=1), 0).astype(np.float32)
    if m < k:
        index = np.pad(index, ((0, 0), (0, k - m)))
        top = np.pad(top, ((0, 0), (0, k - m)))
    return index, top, rest, total


def _every(rows: Float32) -> npt.NDArray[np.intp]:
    return np.broadcast_to(np.arange(rows.shape[1]), rows.shape)


def _sizes(shapes: Sequence[tuple[int, ...]]) -> tuple[list[int], list[int], list[int]]:
    heads, n, m = zip(*shapes, strict=True)
    return list(heads), list(n), list(m)


def _rounded(rows: Float32, shown: Shown) -> tuple[Roots, Float32 | None]:
    """Return the roots of rows (R, k), and the largest of each row (R,); of weights that is 1."""
    if shown == "weights":
        return to_roots(np.clip(rows, 0, 1), 1), None
    peak = largest_sizes(rows)
    return to_roots(rows, peak[:, None], shown == "contribution"), peak


def _left_out(rest: Float32, shown: Shown) -> npt.NDArray[Any]:
    """Return what is left out of each row: of weights in 65535ths; shares can sum to more."""
    if shown != "weights":
        return rest
    return np.rint(np.clip(rest, 0, 1) * UNIT).astype(np.uint16)


def _uneven_sums(sums: Float32) -> Float32 | None:
    """Return the sums (R,) if some row does not sum to one, else None."""
    return None if (np.abs(sums - 1) <= _SLACK).all() else sums.astype(np.float32)
