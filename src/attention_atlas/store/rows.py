"""Which weights do some heads of a layer give to some rows and columns of an input?

The one place where stored queries, keys, forms, sinks and soft caps become weights. A softmax needs
its whole row, so R rows and C columns of M keys cost R × M, a piece at a time; they never cost all
N × M of an input. Columns are cut last: once the log-sum-exp of each row is stored, the keys of
other columns need not be read at all, and `_recomputed` is the place to say so.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError
from attention_atlas.store import softmax
from attention_atlas.store.files import Array
from attention_atlas.store.form import Form, Ints
from attention_atlas.store.manifest import Layer
from attention_atlas.store.shard import HeldTensors, ShardFile, runs, unpack_form

LARGEST = 4_000_000  # numbers of one array at once
Float32 = npt.NDArray[np.float32]


def indexes(asked: Sequence[int] | None, count: int, what: str) -> Ints:
    """Returns which of `count` things are asked for, in that order; None asks for all.

    Numbers below zero count from the end. A PickError says what there is.
    """
    if asked is None:
        return np.arange(count)
    if isinstance(asked, range):
        wanted = np.arange(asked.start, asked.stop, asked.step)
    else:
        wanted = np.asarray(asked, dtype=np.intp).reshape(-1)
    if wanted.size and (wanted.min() < -count or wanted.max() >= count):
        raise PickError(f"{what} go from 0 to {count - 1}; asked for {wanted.tolist()}")
    return wanted % count if wanted.size else wanted


class StoredLayer:
    """One layer of a tower in one shard: its blocks, vectors and weights."""

    def __init__(self, tensors: ShardFile | HeldTensors, tower: str, layer: Layer):
        self.tensors, self.layer, self._stem = tensors, layer, f"{tower}.L{layer.layer}"
        self.table = tensors.tensor(f"{self._stem}.blocks")  # (blocks, 7): see shard.py
        sizes = self.table[:, 1:3].astype(np.int64)
        pairs = np.column_stack([sizes, sizes[:, 0] * sizes[:, 1]])
        # How many queries, keys and pairs stand before each block: (blocks + 1, 3).
        self._starts = np.concatenate([np.zeros((1, 3), np.int64), np.cumsum(pairs, axis=0)])

    def inputs(self) -> list[int]:
        """Returns the numbers of the shard's inputs."""
        return [int(number) for number in np.unique(self.table[:, 0])]

    def size(self, input: int) -> tuple[int, int]:
        """Returns how many queries and keys an input has here."""
        blocks = self._blocks(input)
        n, m, _ = self._starts[blocks.stop] - self._starts[blocks.start]
        return int(n), int(m)

    def has(self, what: str) -> bool:
        """Whether the "query", "key", "value" or "weights" of this layer are stored."""
        return f"{self._stem}.{what}" in self.tensors.names

    def vectors(self, what: str, entries: Ints, input: int | None = None) -> Float32:
        """Returns the vectors of some heads (of groups, for "key" and "value"): (H, N, D).

        Those of one input, or of all inputs of the shard.
        """
        span = slice(None)
        if input is not None:
            blocks, side = self._blocks(input), 0 if what == "query" else 1
            span = slice(*self._starts[[blocks.start, blocks.stop], side].tolist())
        return self._read(what, entries, span).astype(np.float32)

    def weights(
        self, input: int, heads: Ints, rows: Ints | None = None, columns: Ints | None = None
    ) -> Float32:
        """Returns the weights (H, R, C) of an input; None stands for all rows, all columns."""
        n, m = self.size(input)
        rows = np.arange(n) if rows is None else rows
        blocks = self._blocks(input)
        if len(blocks) == 1 and self._fits(len(heads), len(rows), m):
            made = self._block(blocks.start, heads, rows)
            return made if columns is None else made[:, :, columns]
        columns = np.arange(m) if columns is None else columns
        weights = np.zeros((len(heads), len(rows), len(columns)), np.float32)
        for block, across, down in self._spans(input):
            mine = np.flatnonzero((rows >= across.start) & (rows < across.stop))
            here = np.flatnonzero((columns >= down.start) & (columns < down.stop))
            if not here.size:
                continue
            for some, these in self._chunks(len(heads), mine, len(down)):
                made = self._block(block, heads[some], rows[these] - across.start)
                weights[np.ix_(some, these, here)] = made[:, :, columns[here] - down.start]
        return weights

    def seen(self, input: int, heads: Ints, rows: Ints | None = None) -> npt.NDArray[np.bool_]:
        """Returns which keys any of some heads may look at: (R, M)."""
        n, m = self.size(input)
        rows = np.arange(n) if rows is None else rows
        seen = np.zeros((len(rows), m), bool)
        for block, across, down in self._spans(input):
            mine = np.flatnonzero((rows >= across.start) & (rows < across.stop))
            if mine.size:
                form = self._form(block, heads, rows[mine] - across.start)
                seen[mine, down.start : down.stop] = form.visible(len(mine), len(down)).any(0)
        return seen

    def added(self, input: int, head: int) -> Float32 | None:
        """Returns what is added to the logits of a head, (N, M), or None where nothing is."""
        added = np.zeros(self.size(input), np.float32)
        for block, across, down in self._spans(input):
            bias = self._form(block, np.array([head]), np.arange(len(across))).added(
                len(across), len(down)
            )
            if bias is not None:
                added[across.start : across.stop, down.start : down.stop] = bias[0]
        return added if added.any() else None

    def sink(self, heads: Ints) -> Array | None:
        """Returns the logits of the sinks of some heads, (H,), or None where there are none."""
        return self.tensors.tensor(f"{self._stem}.sink")[heads] if self.layer.sink else None

    # One block -----------------------------------------------------------------------------------

    def _block(self, block: int, heads: Ints, rows: Ints) -> Float32:
        """Returns the weights of some rows of a block: the stored ones, else recomputed ones."""
        if self.has("weights"):
            return self._kept(block, heads, rows)
        return self._recomputed(block, heads, rows)

    def _kept(self, block: int, heads: Ints, rows: Ints) -> Float32:
        m, first = int(self.table[block, 2]), int(self._starts[block, 2])
        spans = [slice(first + run.start * m, first + run.stop * m) for run in runs(rows)]
        flat = np.concatenate([self._read("weights", heads, span) for span in spans], axis=1)
        return flat.reshape(len(heads), len(rows), m).astype(np.float32)

    def _recomputed(self, block: int, heads: Ints, rows: Ints) -> Float32:
        (q, k, _), k_end = self._starts[block], int(self._starts[block + 1, 1])
        share = self.layer.heads // self.layer.groups
        groups, place = np.unique(heads // share, return_inverse=True)
        key = self._read("key", groups, slice(int(k), k_end))
        whole = (groups[:, None] * share + np.arange(share)).reshape(-1)
        return softmax.weights(
            self._read("query", heads, rows + q),
            key if np.array_equal(heads, whole) else key[place],
            scale=self.layer.scale, softcap=self.layer.softcap, sink=self.sink(heads),
            form=self._form(block, heads, rows),
        )  # fmt: skip

    def _form(self, block: int, heads: Ints, rows: Ints) -> Form:
        return unpack_form(self.table[block], self.tensors, heads, rows)

    def _read(self, what: str, entries: Ints, span: Ints | slice) -> Array:
        return self.tensors.part(f"{self._stem}.{what}", entries, span)

    # Where things stand --------------------------------------------------------------------------

    def _blocks(self, input: int) -> range:
        first, last = np.searchsorted(self.table[:, 0], [input, input + 1])
        return range(int(first), int(last))

    def _spans(self, input: int) -> Iterator[tuple[int, range, range]]:
        """Yields each block of an input with the rows and the columns of the input it holds."""
        blocks = self._blocks(input)
        starts = self._starts[blocks.start : blocks.stop + 1, :2]
        for block, (n0, m0), (n1, m1) in zip(
            blocks, (starts - starts[0]).tolist(), (starts[1:] - starts[0]).tolist(), strict=False
        ):
            yield block, range(n0, n1), range(m0, m1)

    def _fits(self, heads: int, rows: int, m: int) -> bool:
        return heads * rows > 0 and heads * max(rows, self.layer.width) * m <= LARGEST

    def _chunks(self, heads: int, rows: Ints, m: int) -> Iterator[tuple[Ints, Ints]]:
        """Yields heads and rows that fit into memory together, as places in what was asked for."""
        if not heads or not rows.size:
            return
        tall = max(1, LARGEST // max(1, m))
        wide = max(1, LARGEST // max(1, max(min(tall, len(rows)), self.layer.width) * m))
        for head in range(0, heads, wide):
            for row in range(0, len(rows), tall):
                yield np.arange(head, min(head + wide, heads)), rows[row : row + tall]
