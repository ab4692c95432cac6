"""Which weights do a head's queries and keys give in some rows and columns, without the rest?

A weight is exp(logit − log-sum-exp of its row), so any rectangle needs its own queries and keys and
one number a row. That number is stored, or computed once for the rows that are asked for, a piece
at a time.

With the length ‖f(v_j)‖ of what each key's value becomes, the same gives what a head moves: its
share w_ij ‖f(v_j)‖ / Σ_j w_ij ‖f(v_j)‖ is a softmax of logit + log ‖f(v_j)‖, without the head's own
sink, from which nothing is moved.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attention_atlas.store.form import Form, Ints
from attention_atlas.store.head_weights import WIDE, pieces
from attention_atlas.store.products import Products
from attention_atlas.store.rows import Float32, StoredLayer

_NOTHING = np.float32(-np.inf)
_LOWEST = -1e30  # the largest logit of a row of which no key was seen yet


@dataclass(frozen=True)
class _Part:
    """The rows of a band that belong to one softmax of the input."""

    place: slice  # of these rows in the band
    rows: Ints
    columns: range  # all columns of the softmax
    form: Form  # of these rows
    blank: npt.NDArray[np.bool_]  # (R,) rows that see no key: the model gives them even weights
    reach: range


class ComputedWeights:
    """The weights of one head from its queries, keys and log-sum-exp."""

    def __init__(
        self,
        stored: StoredLayer,
        input: int,
        head: int,
        without: Sequence[int] = (),
        lengths: Float32 | None = None,  # (M,)
    ):
        self.n, self.m = stored.size(input)
        layer, self._head = stored.layer, np.array([head])
        group = np.array([head * layer.groups // layer.heads])
        query = stored.vectors("query", self._head, input)[0] * np.float32(layer.scale)
        self._products = Products(query, stored.vectors("key", group, input)[0])
        self._stored, self._softcap = stored, layer.softcap
        sink = stored.sink(self._head) if lengths is None else None
        self._sink = None if sink is None else float(sink[0])
        self._gone = np.zeros(self.m, bool)
        self._gone[list(without)] = True
        self._longer: Float32 | None = None
        if lengths is not None:
            self._gone |= lengths <= 0
            self._longer = np.log(np.where(self._gone, 1, lengths)).astype(np.float32)
        self._spans = list(stored.spans(input))
        plain = not without and lengths is None
        known = stored.lse(input, self._head) if plain else None
        self._lse = np.full(self.n, np.nan, np.float32) if known is None else known[0].copy()

    @property
    def bytes(self) -> int:
        return self._products.bytes + self._lse.nbytes

    def band(self, rows: Ints) -> "ComputedBand":
        """Return some rows, with their log-sum-exp."""
        parts = list(self._parts(rows))
        for part in parts:
            if np.isnan(self._lse[part.rows]).any() or part.blank.any():
                self._lse[part.rows] = self._log_sums(part)
        return ComputedBand(self, parts, len(rows))

    def weights(self, part: _Part, columns: range) -> Float32:
        """Return the weights (R, C) of some columns of one softmax."""
        logits = self._logits(part, columns)
        np.subtract(logits, self._lse[part.rows, None], out=logits)
        return np.exp(logits, out=logits)

    def _parts(self, rows: Ints) -> Iterator[_Part]:
        """Yield the rows of each softmax that has some of these rows."""
        for block, queries, keys in self._spans:
            first, last = np.searchsorted(rows, [queries.start, queries.stop])
            if first == last:
                continue
            own, width = rows[first:last], len(keys)
            form = self._stored.form(block, self._head, own - queries.start)
            blank, seen = form.blank(width)[0], form.reach(width)
            seen = range(width) if blank.any() else seen
            reach = range(keys.start + seen.start, keys.start + seen.stop)
            yield _Part(slice(first, last), own, keys, form, blank, reach)

    def _logits(self, part: _Part, columns: range) -> Float32:
        """Return the logits (R, C) of a piece of one softmax; −inf at keys that no row may see."""
        logits = self._products.piece(part.rows, columns)
        if self._softcap is not None:
            cap = np.float32(self._softcap)
            np.tanh(np.divide(logits, cap, out=logits), out=logits)
            np.multiply(logits, cap, out=logits)
        local = range(columns.start - part.columns.start, columns.stop - part.columns.start)
        bias = part.form.added_in(len(part.columns), local)
        if bias is not None:
            logits += bias[0]
        seen = part.form.visible_in(local)
        if seen is not None:
            np.copyto(logits, _NOTHING, where=~seen[0])
        if part.blank.any():
            logits[part.blank] = 0
        if self._longer is not None:
            logits += self._longer[columns.start : columns.stop]
        gone = self._gone[columns.start : columns.stop]
        if gone.any():
            logits[:, gone] = _NOTHING
        return logits

    def _log_sums(self, part: _Part) -> Float32:
        """Return the log-sum-exp (R,) of the rows of one softmax; inf where no key is left."""
        top = np.full(len(part.rows), _LOWEST if self._sink is None else self._sink)
        total = np.full(len(part.rows), 0.0 if self._sink is None else 1.0)  # over exp(top)
        for columns in pieces(part.reach, WIDE):
            logits = self._logits(part, columns)
            new = np.maximum(top, logits.max(axis=1))
            total *= np.exp(top - new)
            np.subtract(logits, new[:, None].astype(np.float32), out=logits)
            total += np.exp(logits, out=logits).sum(axis=1)
            top = new
        sums = np.full(len(part.rows), np.inf, np.float32)
        left = total > 0
        sums[left] = top[left] + np.log(total[left])
        return sums


@dataclass(frozen=True)
class ComputedBand:
    """Some rows of a head; their columns are computed when they are read."""

    head: ComputedWeights
    parts: Sequence[_Part]
    count: int

    @property
    def reach(self) -> range:
        seen = [part.reach for part in self.parts if len(part.reach)]
        return range(min(s.start for s in seen), max(s.stop for s in seen)) if seen else range(0)

    def piece(self, columns: range) -> Float32:
        """Return the weights (R, C) of some columns."""
        if len(self.parts) == 1 and _within(columns, self.parts[0].columns):
            return self.head.weights(self.parts[0], columns)
        weights = np.zeros((self.count, len(columns)), np.float32)
        for part in self.parts:
            start = max(columns.start, part.columns.start)
            stop = min(columns.stop, part.columns.stop)
            if start < stop:
                place = slice(start - columns.start, stop - columns.start)
                weights[part.place, place] = self.head.weights(part, range(start, stop))
        return weights


def _within(inner: range, outer: range) -> bool:
    return outer.start <= inner.start and inner.stop <= outer.stop
