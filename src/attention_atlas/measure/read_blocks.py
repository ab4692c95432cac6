"""How is an input read in blocks of rows, so that it is never whole in memory?

The vectors of one layer and shard are at hand (`StoredAtlas.held_layer`, or those of a capture that
is running); weights are recomputed from them for a few rows at a time, where `Computing` says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.measure.arrays import namespace
from attention_atlas.measure.row_block import Keys, RowBlock
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.store import softmax
from attention_atlas.store.cores import cores
from attention_atlas.store.files import Array
from attention_atlas.store.form import UNBOUNDED, Form, Ints
from attention_atlas.store.manifest import Layer
from attention_atlas.store.rows import StoredLayer

LARGEST = 1_000_000  # weights at once, a few megabytes
LARGEST_ON_GPU = 32_000_000
CHANCE_ROWS = 256  # of an input: for the chance of numbers that must be shuffled
MOST_ROWS = 4096  # of an input; of a longer one, so many are drawn
WORTH_A_GPU = 200_000  # weights of an input and layer; below, calls cost more than numbers
WORTH_A_THREAD = 200_000  # the same: threads wait for each other between calls
MOST_THREADS = 8  # each holds a layer's vectors and some blocks


@dataclass(frozen=True)
class Computing:
    """Where blocks are computed, how large they are, and how many rows of an input they cover."""

    device: str = "numpy"  # or a device of torch: "cpu", "cuda"
    largest: int = LARGEST
    rows: int | None = MOST_ROWS  # None: all

    def put(self, values: Array) -> Any:
        """Put values where they are computed with; float16 becomes float32."""
        if self.device == "numpy":
            return values.astype(np.float32) if values.dtype == np.float16 else values
        import torch

        moved = torch.from_numpy(np.ascontiguousarray(values)).to(self.device, non_blocking=True)
        return moved.float() if moved.dtype == torch.float16 else moved

    def some_rows(self, count: int, seed: int) -> Ints:
        """Draw the rows of an input of `count`, one of each of equal parts; returns them sorted."""
        if self.rows is None or count <= self.rows:
            return np.arange(count)
        edges = np.linspace(0, count, self.rows + 1).astype(np.intp)
        return np.random.default_rng([seed, count]).integers(edges[:-1], edges[1:])


HERE = Computing()


@dataclass(frozen=True)
class Machine:
    """What there is to compute with, from which each input gets what suits its size."""

    device: str = "numpy"
    largest: int | None = None
    rows: int | None = MOST_ROWS
    cores: int | None = None  # None: all

    def for_input(self, weights: int) -> Computing:
        """Choose where an input of so many weights is computed, and in what blocks."""
        on_gpu = self.device != "numpy" and weights >= WORTH_A_GPU
        largest = self.largest or (LARGEST_ON_GPU if on_gpu else LARGEST)
        return Computing(self.device if on_gpu else "numpy", largest, self.rows)

    def threads(self, weights: int) -> int:
        """Count the threads that are worth it for layers of so many weights."""
        if weights < WORTH_A_THREAD:
            return 1
        return 2 if self.device != "numpy" else min(self.cores or cores(), MOST_THREADS)


ALL_CORES = Machine()


def find_machine(device: str = "auto", all_rows: bool = False) -> Machine:
    """Find what to compute with: a GPU where there is one, else NumPy on all cores."""
    if device == "auto":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    return Machine("numpy" if device == "cpu" else device, rows=None if all_rows else MOST_ROWS)


def head_ranges(layer: Layer, keys: int, largest: int = LARGEST) -> Iterator[Ints]:
    """Yield the numbers of heads whose rows fit into memory together: all, or some whole groups."""
    size = layer.heads // layer.groups
    step = max(1, largest // max(1, keys) // size) * size
    for start in range(0, layer.heads, step):
        yield np.arange(start, min(start + step, layer.heads))


def row_blocks(
    stored: StoredLayer, input: int, heads: Ints, tokens: TokenTable,
    computing: Computing = HERE, seed: int = 0,
) -> Iterator[RowBlock]:  # fmt: skip
    """Yield the rows of an input in order, in blocks of at most `computing.largest` weights."""
    n, m = stored.size(input)
    reader = _Reader(stored, input, heads, computing)
    keys, square = reader.keys(tokens), stored.layer.queries == stored.layer.keys
    query = reader.vectors("query", heads)
    all_rows = computing.some_rows(n, seed)
    chance_step = max(1, len(all_rows) // CHANCE_ROWS)
    step = max(1, computing.largest // (len(heads) * max(1, m)))
    for start in range(0, len(all_rows), step):
        rows = all_rows[start : start + step]
        of_rows = None if query is None else query[:, computing.put(rows)]
        weights, seen, products = reader.weights(rows, of_rows, keys.vectors)
        yield RowBlock(
            weights, computing.put(rows), seen, keys, square, of_rows, products, chance_step
        )


@dataclass(frozen=True)
class _Reader:
    """Some heads of one input."""

    stored: StoredLayer
    input: int
    heads: Ints
    computing: Computing

    def vectors(self, what: str, entries: Ints) -> Any:
        """Read vectors (entries, N, D); None where they are not stored."""
        if not self.stored.has(what):
            return None
        return self.computing.put(self.stored.as_stored(what, entries, self.input))

    def keys(self, tokens: TokenTable) -> Keys:
        """Read what there is to know of the input's keys."""
        layer, put = self.stored.layer, self.computing.put
        groups, group_of = np.unique(
            self.heads // (layer.heads // layer.groups), return_inverse=True
        )
        by_head = [
            None if vectors is None else vectors[put(group_of)]
            for vectors in (self.vectors("key", groups), self.vectors("value", groups))
        ]
        place = tokens.places(self.input, layer.keys)
        marks = (put(marks) for marks in tokens.of(self.input, layer.keys))
        ids, special, punctuation = marks
        place = None if place is None else put(place)
        return Keys(ids, special, punctuation, place, by_head[0], by_head[1])

    def weights(self, rows: Ints, query: Any, key: Any) -> tuple[Any, Any, Any]:
        """Compute weights (H, R, M) of some rows, which keys are seen (R, M), and products q·k."""
        stored, put = self.stored, self.computing.put
        form = stored.only_form(self.input, self.heads, rows)
        if form is None or stored.has("weights"):
            weights = stored.weights(self.input, self.heads, rows)
            return put(weights), put(stored.seen(self.input, self.heads, rows)), None
        xp, layer = namespace(query), stored.layer
        m = stored.size(self.input)[1]
        width = m if form.low == -UNBOUNDED else max(1, min(m, int(rows[-1]) - form.low + 1))
        seen = _seen(form, put(rows), put(np.arange(width)))
        if form.hidden is not None:
            seen = seen & ~put(form.hidden[:, :, :width])
        bias = form.added(len(rows), m)
        if bias is not None:
            bias = put(bias[:, :, :width].astype(np.float32))
        sink = stored.sink(self.heads)
        products = query @ key[:, :width].swapaxes(1, 2)
        logits = softmax.logits_of(products, layer.scale, layer.softcap, bias, seen, xp)
        sink = None if sink is None else put(sink.astype(np.float32))
        return softmax.normalised(logits, sink, xp), seen.any(0), products


def _seen(form: Form, rows: Any, columns: Any) -> Any:
    """Tell which keys are inside the band of a form; returns (1, R, M)."""
    offset = rows[:, None] - columns
    if form.high == UNBOUNDED:
        return (offset >= form.low)[None]
    return ((offset >= form.low) & (offset <= form.high))[None]
