"""What are the weights of some heads of a layer for some rows and columns of an input?

Only here do stored queries, keys, forms, sinks and soft caps become weights. A softmax needs its
whole row, so R rows and C columns of M keys cost R × M, a chunk at a time, but never all N × M of
an input. Columns are selected last. (Where the log-sum-exp of each row is stored, `lse`, a single
weight needs one query and one key.)
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError
from attention_atlas.store import softmax
from attention_atlas.store.files import Array
from attention_atlas.store.form import Form, Ints
from attention_atlas.store.half import as_float32
from attention_atlas.store.manifest import Layer
from attention_atlas.store.shard import HeldTensors, ShardFile, unpack_form
from attention_atlas.store.tensor_file import TensorKind, runs

LARGEST = 4_000_000  # numbers of one array at once
Float32 = npt.NDArray[np.float32]


def indexes(asked: Sequence[int] | None, count: int, what: str) -> Ints:
    """Return the numbers asked for, in that order, all from 0 to count − 1; None asks for all.

    Numbers below zero count from the end. Raise a PickError for a number out of range.
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
        # How many queries, keys and pairs come before each block: (blocks + 1, 3).
        self._starts = np.concatenate([np.zeros((1, 3), np.int64), np.cumsum(pairs, axis=0)])

    def inputs(self) -> list[int]:
        """Return the numbers of the shard's inputs."""
        return [int(number) for number in np.unique(self.table[:, 0])]

    def size(self, input: int) -> tuple[int, int]:
        """Return how many queries and keys an input has in this layer."""
        blocks = self._blocks(input)
        n, m, _ = self._starts[blocks.stop] - self._starts[blocks.start]
        return int(n), int(m)

    def has(self, what: str) -> bool:
        """Tell whether the "query", "key", "value" or "weights" of this layer are stored."""
        return f"{self._stem}.{what}" in self.tensors.names

    def vectors(self, what: str, entries: Ints, input: int | None = None) -> Float32:
        """Return the vectors (H, N, D) of some heads (of groups, for "key" and "value").

        They are those of one input, or of all inputs of the shard.
        """
        return as_float32(self.as_stored(what, entries, input))

    def as_stored(self, what: str, entries: Ints, input: int | None = None) -> Array:
        """Return the same vectors in the type that they are stored in."""
        span = slice(None)
        if input is not None:
            blocks, side = self._blocks(input), 0 if what == "query" else 1
            span = slice(*self._starts[[blocks.start, blocks.stop], side].tolist())
        return self._read(what, entries, span)

    def kind(self, what: str) -> TensorKind:
        """Return the shape and the type of this layer's "query", "key" or "value"."""
        return self.tensors.kind(f"{self._stem}.{what}")

    def fill(self, what: str, entries: Ints, rows: Ints, target: Array, places: Ints) -> None:
        """Read vectors at `rows` of the shard, as stored, into `target` (H, N, D) at `places`."""
        name, together = f"{self._stem}.{what}", runs(places)
        if len(together) == 1:
            self.tensors.fill(name, entries, rows, target[:, together[0]])
        else:
            target[:, places] = self.tensors.part(name, entries)[:, rows]

    @property
    def counts(self) -> tuple[int, int]:
        """Count the queries and the keys of all inputs of the shard."""
        return int(self._starts[-1, 0]), int(self._starts[-1, 1])

    def vectors_at(self, what: str, entry: int, rows: Ints | slice) -> Float32:
        """Return some vectors (R, D) of one head (of one group, for "key") of the shard."""
        return as_float32(self._read(what, np.array([entry]), rows)[0])

    def weights(
        self, input: int, heads: Ints, rows: Ints | None = None, columns: Ints | None = None
    ) -> Float32:
        """Return the weights (H, R, C) of an input; None means all rows, all columns."""
        n, m = self.size(input)
        rows = np.arange(n) if rows is None else rows
        blocks = self._blocks(input)
        together = self._sharing(heads)
        if len(blocks) == 1 and self._fits(len(heads), len(rows), m, together):
            full = self._block(blocks.start, heads, rows)
            return full if columns is None else full[:, :, columns]
        columns = np.arange(m) if columns is None else columns
        weights = np.zeros((len(heads), len(rows), len(columns)), np.float32)
        for block, queries, keys in self.spans(input):
            inside = np.flatnonzero((rows >= queries.start) & (rows < queries.stop))
            column_places = np.flatnonzero((columns >= keys.start) & (columns < keys.stop))
            if not column_places.size:
                continue
            for head_places, row_places in self._chunks(len(heads), inside, len(keys), together):
                chunk = self._block(block, heads[head_places], rows[row_places] - queries.start)
                chunk = chunk[:, :, columns[column_places] - keys.start]
                weights[np.ix_(head_places, row_places, column_places)] = chunk
        return weights

    def lse(self, input: int, heads: Ints, rows: Ints | None = None) -> Float32 | None:
        """Return the log-sum-exp of the logits of some rows, (H, R), or None if it is not stored.

        The model computed it; the weight of a key is exp(logit − lse). It differs from that of the
        stored vectors as far as these were rounded.
        """
        if not self.has("lse"):
            return None
        blocks = self._blocks(input)
        first, end = self._starts[[blocks.start, blocks.stop], 0].tolist()
        span = slice(first, end) if rows is None else rows + first
        return as_float32(self._read("lse", heads, span))

    def seen(
        self, input: int, heads: Ints, rows: Ints | None = None, columns: range | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return which keys, or some of them, any of some heads may look at, bool (R, C)."""
        n, m = self.size(input)
        rows = np.arange(n) if rows is None else rows
        columns = range(m) if columns is None else columns
        seen = np.zeros((len(rows), len(columns)), bool)
        for block, queries, keys in self.spans(input):
            inside = np.flatnonzero((rows >= queries.start) & (rows < queries.stop))
            start, stop = max(columns.start, keys.start), min(columns.stop, keys.stop)
            if inside.size and start < stop:
                form = self.form(block, heads, rows[inside] - queries.start)
                visible = form.visible_in(range(start - keys.start, stop - keys.start))
                place = slice(start - columns.start, stop - columns.start)
                seen[inside, place] = True if visible is None else visible.any(0)
        return seen

    def added(self, input: int, heads: Ints, rows: Ints | None = None) -> Float32 | None:
        """Return the biases added to the logits, (H, R, M), or None if there are none."""
        n, m = self.size(input)
        rows = np.arange(n) if rows is None else rows
        if (self.table[self._blocks(input), 6] < 0).all():  # no block has a bias
            return None
        added = np.zeros((len(heads), len(rows), m), np.float32)
        for block, queries, keys in self.spans(input):
            inside = np.flatnonzero((rows >= queries.start) & (rows < queries.stop))
            if inside.size:
                form = self.form(block, heads, rows[inside] - queries.start)
                bias = form.added(len(queries), len(keys))
                if bias is not None:
                    added[:, inside, keys.start : keys.stop] = bias
        return added if added.any() else None

    def only_form(self, input: int, heads: Ints, rows: Ints) -> Form | None:
        """Return the mask and bias of an input's rows; None where it is cut into several blocks."""
        blocks = self._blocks(input)
        return self.form(blocks.start, heads, rows) if len(blocks) == 1 else None

    def alike(self, input: int) -> tuple[object, ...] | None:
        """Return what layers must have in common for an input to be computed together.

        None where this layer must be computed alone: weights that are stored, several blocks, a
        mask or a bias of its own.
        """
        blocks, layer = self._blocks(input), self.layer
        if len(blocks) != 1 or self.has("weights") or (self.table[blocks.start, 5:] >= 0).any():
            return None
        return (
            *self.table[blocks.start, 1:5].tolist(), layer.queries, layer.keys, layer.scale,
            layer.softcap, layer.sink, *(self.has(what) for what in ("query", "key", "value")),
            layer.width, layer.value_width,
        )  # fmt: skip

    def alike_weights(self, inputs: Sequence[int], head: int, rows: int) -> Float32:
        """Return the weights (I, R, M) of a head's first rows, of inputs that are `alike`.

        They are computed as one, as if they were heads of one input: a call for each short input
        costs more than its numbers.
        """
        heads, blocks = np.array([head]), np.array([self._blocks(i).start for i in inputs])
        n, m = rows, int(self.table[blocks[0], 2])
        starts = self._starts[blocks]  # (I, 3)
        queries = (starts[:, :1] + np.arange(n)).reshape(-1)
        keys = (starts[:, 1:2] + np.arange(m)).reshape(-1)
        share, sink = self.layer.heads // self.layer.groups, self.sink(heads)
        return softmax.weights(
            self._read("query", heads, queries).reshape(len(inputs), n, -1),
            self._read("key", heads // share, keys).reshape(len(inputs), m, -1),
            scale=self.layer.scale, softcap=self.layer.softcap,
            sink=None if sink is None else np.repeat(sink, len(inputs)),
            form=self.form(int(blocks[0]), heads, np.arange(n)),
        )  # fmt: skip

    def sink(self, heads: Ints) -> Array | None:
        """Return the logits of the sinks of some heads, (H,), or None if there are none."""
        return self.tensors.tensor(f"{self._stem}.sink")[heads] if self.layer.sink else None

    # One block -----------------------------------------------------------------------------------

    def _block(self, block: int, heads: Ints, rows: Ints) -> Float32:
        """Return the weights of some rows of a block (H, R, m), stored or recomputed."""
        if self.has("weights"):
            return self._kept(block, heads, rows)
        return self._recomputed(block, heads, rows)

    def _kept(self, block: int, heads: Ints, rows: Ints) -> Float32:
        m, first = int(self.table[block, 2]), int(self._starts[block, 2])
        spans = [slice(first + run.start * m, first + run.stop * m) for run in runs(rows)]
        flat = np.concatenate([self._read("weights", heads, span) for span in spans], axis=1)
        return as_float32(flat.reshape(len(heads), len(rows), m))

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
            form=self.form(block, heads, rows),
        )  # fmt: skip

    def form(self, block: int, heads: Ints, rows: Ints) -> Form:
        """Return the mask and bias of a block for some heads and some of its rows."""
        return unpack_form(self.table[block], self.tensors, heads, rows)

    def _read(self, what: str, entries: Ints, span: Ints | slice) -> Array:
        return self.tensors.part(f"{self._stem}.{what}", entries, span)

    # Rows and columns of blocks ------------------------------------------------------------------

    def _blocks(self, input: int) -> range:
        first, last = np.searchsorted(self.table[:, 0], [input, input + 1])
        return range(int(first), int(last))

    def spans(self, input: int) -> Iterator[tuple[int, range, range]]:
        """Yield each block of an input with its rows and its columns of that input."""
        blocks = self._blocks(input)
        starts = self._starts[blocks.start : blocks.stop + 1, :2]
        for block, (n0, m0), (n1, m1) in zip(
            blocks, (starts - starts[0]).tolist(), (starts[1:] - starts[0]).tolist(), strict=False
        ):
            yield block, range(n0, n1), range(m0, m1)

    def _sharing(self, heads: Ints) -> int:
        """Return how many heads share their keys, where all are asked for: they are not copied."""
        every = np.array_equal(heads, np.arange(self.layer.heads))
        return self.layer.heads // self.layer.groups if every else 1

    def _fits(self, heads: int, rows: int, m: int, together: int = 1) -> bool:
        width = -(-self.layer.width // together)
        return heads * rows > 0 and heads * max(rows, width) * m <= LARGEST

    def _chunks(
        self, heads: int, rows: Ints, m: int, together: int = 1
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield places of heads and rows (in what was asked for) that fit into memory together.

        together  so many heads share their keys; they stay in one piece
        """
        if not heads or not rows.size:
            return
        tall = max(1, LARGEST // max(1, m * together))
        width = -(-self.layer.width // together)
        wide = max(1, LARGEST // max(1, max(min(tall, len(rows)), width) * m))
        wide = max(1, wide // together) * together
        for head in range(0, heads, wide):
            for row in range(0, len(rows), tall):
                yield np.arange(head, min(head + wide, heads)), rows[row : row + tall]
