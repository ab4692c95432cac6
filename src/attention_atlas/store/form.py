"""How are the mask and bias of one softmax stored in as few numbers as possible?

Masks and position biases arrive as N×N tensors but are nearly always one of a few shapes: a band
around the diagonal (causal, sliding window), a bias that depends only on the offset i − j (T5), or
only on the key (ALiBi). `compress` finds the smallest form that gives the same numbers, and keeps
bits or a dense bias only where no smaller form does.

Axes: H heads (1 where all heads share), n queries (rows, i), m keys (columns, j).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]

UNBOUNDED = 2**31 - 1
# A key this far below the best of its row has weight exactly zero in any precision we store.
# Masks use -1e4, the dtype's minimum or -inf; all of them pass.
FAR_BELOW = 9_000.0
LARGEST = 1_000_000  # numbers of one array at once, while a form is found


@dataclass(frozen=True)
class Form:
    """A mask and a bias: row i sees the keys j with low ≤ i − j ≤ high, except the `hidden` ones.

    `bias` is added to their logits. A form covers all n rows, or only `rows`: then `hidden` and a
    dense bias hold these rows alone.
    """

    low: int = -UNBOUNDED
    high: int = UNBOUNDED
    hidden: Bools | None = None  # (H or 1, n, m)
    bias_kind: str = (
        ""  # "", "columns" (H, m), "offsets" (H, n+m-1; entry i-j+m-1), "dense" (H, n, m)
    )
    bias: Floats | None = None
    rows: Ints | None = None

    def visible(self, n: int, m: int) -> Bools:
        """Return which of m keys each row may see: bool (H or 1, n, m), or `rows` in place of n."""
        offset = self._offsets(n, m)
        seen = (offset >= self.low) & (offset <= self.high)
        return seen[None] if self.hidden is None else np.asarray(seen[None] & ~self.hidden)

    def added(self, n: int, m: int) -> Floats | None:
        """Return the bias to add to the logits, (H or 1, n or 1, m), or None if there is none."""
        if self.bias is None:
            return None
        if self.bias_kind == "columns":
            return self.bias[:, None, :]
        if self.bias_kind == "offsets":
            return self.bias[:, self._offsets(n, m) + m - 1]
        return self.bias

    # Some columns of `rows`, which are in rising order -------------------------------------------

    def reach(self, m: int) -> range:
        """Return the keys, of m, outside of which the band shows nothing to any of `rows`."""
        rows = self._rows(0)
        first, last = int(rows[0]) - self.high, int(rows[-1]) - self.low
        return range(max(0, min(first, m)), max(0, min(last + 1, m)))

    def blank(self, m: int) -> Bools:
        """Return which of `rows` may see none of m keys: bool (H or 1, R)."""
        rows = self._rows(0)
        outside = (rows < self.low) | (rows - self.high > m - 1)
        if self.hidden is None:
            return np.asarray(outside[None])
        return np.asarray(outside | ~self.visible(len(rows), m).any(axis=-1))

    def visible_in(self, columns: range) -> Bools | None:
        """Return which of some keys `rows` may see, (H or 1, R, C); None: every row sees all."""
        rows = self._rows(0)
        numbers = np.arange(columns.start, columns.stop)
        seen: Bools | None = None
        if int(rows.min()) - columns[-1] < self.low:
            seen = (numbers <= rows[:, None] - self.low)[None]
        if int(rows.max()) - columns[0] > self.high:
            near = (numbers >= rows[:, None] - self.high)[None]
            seen = near if seen is None else seen & near
        if self.hidden is None:
            return seen
        shown = ~self.hidden[:, :, columns.start : columns.stop]
        return shown if seen is None else np.asarray(seen & shown)

    def added_in(self, m: int, columns: range) -> Floats | None:
        """Return the bias of `rows` at some of m keys, (H or 1, R or 1, C); None: there is none."""
        if self.bias is None:
            return None
        if self.bias_kind == "offsets":
            slots = self._rows(0)[:, None] - np.arange(columns.start, columns.stop) + m - 1
            return self.bias[:, slots]
        part = self.bias[..., columns.start : columns.stop]
        return part[:, None, :] if self.bias_kind == "columns" else part

    def _rows(self, n: int) -> Ints:
        return np.arange(n) if self.rows is None else self.rows

    def _offsets(self, n: int, m: int) -> Ints:
        return self._rows(n)[:, None] - np.arange(m)[None, :]


FULL = Form()
CAUSAL = Form(low=0)


def compress(term: Floats | Bools, atol: float = 0.0) -> Form:
    """Return the smallest form of an additive term (H or 1, n, m) or a boolean mask (True: seen).

    Biases within `atol` of a simpler form take that form; 0 asks for equality. An n × m array is
    made only of bools, and of numbers where the form itself is dense; all else is done in blocks of
    rows.
    """
    seen = _shared(_seen(term))
    low, high, hidden = _band(seen)
    if term.dtype == np.bool_:
        return Form(low, high, hidden)
    kind, values = _bias(Bias(_shared(term), seen), atol)
    return Form(low, high, hidden, kind, values)


def _blocks(heads: int, n: int, m: int) -> Iterator[slice]:
    """Yield successive rows whose (H, rows, m) numbers fit into memory together."""
    size = max(1, LARGEST // max(1, heads * m))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _seen(term: Floats | Bools) -> Bools:
    """Return which keys each row sees, bool (H or 1, n, m)."""
    if term.dtype == np.bool_:
        return np.asarray(term, dtype=np.bool_)
    seen = np.empty(term.shape, np.bool_)
    for rows in _blocks(*term.shape):
        best = term[:, rows].max(axis=-1, keepdims=True)
        # In a row that is hidden entirely, the best is far below zero and cannot be compared with.
        seen[:, rows] = (term[:, rows] > best - FAR_BELOW) & (best > -FAR_BELOW)
    return seen


def _shared(per_head: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array of the first head alone (1, …) if all heads are equal, else all of them."""
    if len(per_head) == 1:
        return per_head
    equal = all(
        (per_head[:, rows] == per_head[:1, rows]).all() for rows in _blocks(*per_head.shape)
    )
    return per_head[:1] if equal else per_head


def _band(seen: Bools) -> tuple[int, int, Bools | None]:
    """Return the bounds on i − j, and the hidden keys inside them, (H or 1, n, m), or None."""
    _, n, m = seen.shape
    low, high = _bounds(seen)
    if low > high:  # nothing is seen
        return -UNBOUNDED, UNBOUNDED, ~seen
    hidden: Bools | None = None
    for rows in _blocks(*seen.shape):
        offset = _offsets(rows, m)
        unseen = ((offset >= low) & (offset <= high))[None] & ~seen[:, rows]
        if unseen.any():
            hidden = np.zeros(seen.shape, np.bool_) if hidden is None else hidden
            hidden[:, rows] = unseen
    low = -UNBOUNDED if low <= -(m - 1) else low
    high = UNBOUNDED if high >= n - 1 else high
    return low, high, hidden


def _bounds(seen: Bools) -> tuple[int, int]:
    """Return the least and the largest i − j of a key that is seen; the first is larger if none."""
    low, high = UNBOUNDED, -UNBOUNDED
    for rows in _blocks(*seen.shape):
        anywhere: Bools = np.asarray(seen[:, rows].any(axis=0))  # (rows, m)
        some = np.flatnonzero(anywhere.any(axis=1))
        if some.size:
            first = anywhere[some].argmax(axis=1)
            last = anywhere.shape[1] - 1 - anywhere[some, ::-1].argmax(axis=1)
            low = min(low, int((rows.start + some - last).min()))
            high = max(high, int((rows.start + some - first).max()))
    return low, high


def _offsets(rows: slice, m: int) -> Ints:
    """Return i − j of some rows and all m columns, (rows, m)."""
    return np.arange(rows.start, rows.stop)[:, None] - np.arange(m)[None, :]


@dataclass(frozen=True)
class Bias:
    """An additive term, of which only what is seen counts."""

    term: Floats  # (H or 1, n, m)
    seen: Bools

    def at(self, rows: slice) -> tuple[Floats, Bools]:
        """Return the biases of some rows, zero where not seen, and what is seen, (H, rows, m)."""
        term = self.term[:, rows]
        seen = np.broadcast_to(self.seen[:, rows], term.shape)
        return np.where(seen, term, 0).astype(np.float32), seen

    def whole(self) -> Floats:
        """Return all biases, (H, n, m)."""
        return np.concatenate([self.at(rows)[0] for rows in _blocks(*self.term.shape)], axis=1)

    def is_close(self, simple: Callable[[slice], Floats], atol: float) -> bool:
        """Tell whether a function of rows gives all biases that count."""
        for rows in _blocks(*self.term.shape):
            values, seen = self.at(rows)
            if not (np.abs(values - simple(rows)) <= atol)[seen].all():
                return False
        return True


def _bias(bias: Bias, atol: float) -> tuple[str, Floats | None]:
    heads, _, m = bias.term.shape
    if bias.is_close(lambda rows: np.zeros((1, 1, 1), np.float32), atol):
        return "", None
    columns, offsets = _columns(bias), _by_offset(bias)
    if bias.is_close(lambda rows: columns[:, None, :], atol):
        kind, values = "columns", columns
    elif bias.is_close(lambda rows: offsets[:, _offsets(rows, m) + m - 1], atol):
        kind, values = "offsets", offsets
    else:
        kind, values = "dense", bias.whole()
    same = heads > 1 and (values == values[:1]).all()
    return kind, values[:1] if same else values


def _columns(bias: Bias) -> Floats:
    """Return the bias of each column in the first row that sees it, (H, m)."""
    heads, n, m = bias.term.shape
    columns, known = np.zeros((heads, m), np.float32), np.zeros((heads, m), np.bool_)
    for rows in _blocks(heads, n, m):
        values, seen = bias.at(rows)
        first = seen.argmax(axis=1)[:, None]
        new = seen.any(axis=1) & ~known
        columns[new] = np.take_along_axis(values, first, axis=1)[:, 0][new]
        known |= new
    return columns


def _by_offset(bias: Bias) -> Floats:
    """Return the bias of each offset i − j in the last row that sees it, (H, n+m-1)."""
    heads, n, m = bias.term.shape
    offsets = np.zeros((heads, n + m - 1), np.float32)
    for rows in _blocks(heads, n, m):
        values, seen = bias.at(rows)
        slot = _offsets(rows, m) + m - 1
        for head in range(heads):
            offsets[head, slot[seen[head]]] = values[head][seen[head]]
    return offsets
