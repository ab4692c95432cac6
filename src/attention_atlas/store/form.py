"""How are the mask and bias of one softmax stored in as few numbers as possible?

Masks and position biases arrive as N×N tensors but are nearly always one of a few shapes: a band
around the diagonal (causal, sliding window), a bias that depends only on the offset i − j (T5), or
only on the key (ALiBi). `compress` finds the smallest form that gives the same numbers, and keeps
bits or a dense bias only where no smaller form does.

Axes: H heads (1 where all heads share), n queries (rows, i), m keys (columns, j).
"""

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
        nearest, farthest = int(rows.min()) - columns[-1], int(rows.max()) - columns[0]
        seen: Bools | None = None
        if nearest < self.low or farthest > self.high:
            offset = rows[:, None] - np.arange(columns.start, columns.stop)
            seen = ((offset >= self.low) & (offset <= self.high))[None]
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

    Biases within `atol` of a simpler form take that form; 0 asks for equality.
    """
    seen: Bools
    if term.dtype == np.bool_:
        seen, bias = term.astype(np.bool_), np.zeros(term.shape, np.float32)
    else:
        best = term.max(axis=-1, keepdims=True)
        # In a row that is hidden entirely, the best is far below zero and cannot be compared with.
        seen = np.asarray((term > best - FAR_BELOW) & (best > -FAR_BELOW))
        bias = np.where(seen, term, 0).astype(np.float32)
    seen = _shared(seen)
    low, high, hidden = _band(seen)
    kind, values = _bias(_shared(bias), seen, atol)
    return Form(low, high, hidden, kind, values)


def _shared(per_head: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array of the first head alone (1, …) if all heads are equal, else all of them."""
    if per_head.shape[0] > 1 and (per_head == per_head[:1]).all():
        return per_head[:1]
    return per_head


def _band(seen: Bools) -> tuple[int, int, Bools | None]:
    """Return the bounds on i − j, and the hidden keys inside them, (H or 1, n, m), or None."""
    _, n, m = seen.shape
    offset = np.arange(n)[:, None] - np.arange(m)[None, :]
    anywhere = seen.any(axis=0)
    if not anywhere.any():
        return -UNBOUNDED, UNBOUNDED, ~seen
    low, high = int(offset[anywhere].min()), int(offset[anywhere].max())
    inside = (offset >= low) & (offset <= high)
    hidden = inside[None] & ~seen
    low = -UNBOUNDED if low <= -(m - 1) else low
    high = UNBOUNDED if high >= n - 1 else high
    return low, high, hidden if hidden.any() else None


def _bias(bias: Floats, seen: Bools, atol: float) -> tuple[str, Floats | None]:
    heads, n, m = bias.shape
    if (np.abs(bias) <= atol).all():
        return "", None
    seen = np.broadcast_to(seen, bias.shape)

    columns = _first_seen(bias, seen, axis=1)
    if _close(bias, columns[:, None, :], seen, atol):
        return "columns", columns

    slot = np.arange(n)[:, None] - np.arange(m)[None, :] + m - 1  # (n, m), 0 … n+m-2
    offsets = np.zeros((heads, n + m - 1), np.float32)
    for head in range(heads):
        visible = seen[head]
        offsets[head, slot[visible]] = bias[head][visible]
    if _close(bias, offsets[:, slot], seen, atol):
        return "offsets", offsets
    return "dense", bias


def _first_seen(bias: Floats, seen: Bools, axis: int) -> Floats:
    first = np.expand_dims(seen.argmax(axis=axis), axis)
    return np.take_along_axis(bias, first, axis=axis).squeeze(axis)


def _close(bias: Floats, simple: Floats, seen: Bools, atol: float) -> bool:
    return bool((np.abs(bias - simple) <= atol)[seen].all())
