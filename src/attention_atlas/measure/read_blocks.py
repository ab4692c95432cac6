"""How is an input read in blocks of rows, so that it is never whole in memory?

The vectors of one layer and shard are at hand (`StoredAtlas.held_layer`, or those of a capture that
is running); weights are recomputed from them for a few rows at a time, where `Computing` says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from attention_atlas.measure.arrays import as_numpy, namespace, numbers
from attention_atlas.measure.row_block import Keys, RowBlock
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.store import softmax
from attention_atlas.store.cores import cores
from attention_atlas.store.form import UNBOUNDED, Form, Ints
from attention_atlas.store.half import as_float32
from attention_atlas.store.manifest import Layer
from attention_atlas.store.rows import StoredLayer

LARGEST = 1_000_000  # weights at once, a few megabytes
LARGEST_ON_GPU = 64_000_000  # 256 MB; smaller where that does not fit, larger on a large GPU
MOST_ON_GPU = 512_000_000  # calls on more weights at once cost as much as their numbers
BYTES_A_WEIGHT = 256  # of a GPU's memory, for a weight of a block: two threads, copies, a model
CHANCE_ROWS = 256  # of an input: for the chance of numbers that must be shuffled
MOST_ROWS = 4096  # of an input; of a longer one, so many are drawn
MOST_WEIGHTS = 2**25  # of a head and input; of one longer than 8,192 tokens, fewer rows are drawn
WORTH_A_GPU = 200_000  # weights of an input and layer; below, calls cost more than numbers
WORTH_A_THREAD = 200_000  # the same: threads wait for each other between calls
MOST_THREADS = 8  # each holds the vectors of some layers and some blocks
TOGETHER_ON_GPU = 8  # blocks of an input, of layers that are measured together
PARTS, PARTS_ON_GPU = 4, 2  # of the layers of a shard: one is read while another is measured


@dataclass(frozen=True)
class Computing:
    """Where blocks are computed, how large they are, and how many rows of an input they cover."""

    device: str = "numpy"  # or a device of torch: "cpu", "cuda"
    largest: int = LARGEST
    rows: int | None = MOST_ROWS  # None: all

    def put(self, values: Any) -> Any:
        """Put values, of NumPy or of a capture's torch, where they are computed with.

        Floats of 16 bits become float32.
        """
        moved = self._moved(values)
        if self.device == "numpy":
            return as_float32(moved) if moved.dtype == np.float16 else moved
        return moved.float() if moved.dtype.itemsize == 2 and moved.is_floating_point() else moved

    def joined(self, parts: Sequence[Any]) -> Any:
        """Put arrays where they are computed with, joined along their first axis, as they are."""
        return _joined([self._moved(part) for part in parts])

    def _moved(self, values: Any) -> Any:
        if self.device == "numpy":
            return as_numpy(values)
        import torch

        if isinstance(values, np.ndarray):
            values = torch.from_numpy(np.ascontiguousarray(values))
        return values.to(self.device, non_blocking=True)

    @property
    def fused(self) -> bool:
        """Tell whether a kernel sums the rows of a block."""
        return self.device.startswith("cuda") and _has_triton()

    def some_rows(self, count: int, seed: int) -> Ints:
        """Draw the rows of an input of `count`, one of each of equal parts; returns them sorted."""
        if self.rows is None or count <= self.rows:
            return np.arange(count)
        rows = min(self.rows, max(1, MOST_WEIGHTS // count))
        edges = np.linspace(0, count, rows + 1).astype(np.intp)
        return np.random.default_rng([seed, count]).integers(edges[:-1], edges[1:])


HERE = Computing()


@dataclass(frozen=True)
class Machine:
    """What there is to compute with, from which each input gets what suits its size."""

    device: str = "numpy"
    largest: int | None = None
    rows: int | None = MOST_ROWS
    cores: int | None = None  # None: all
    held: bool = False  # vectors are at hand, so that no layers need to be read beside others

    def for_input(self, weights: int) -> Computing:
        """Choose where an input of so many weights is computed, and in what blocks."""
        on_gpu = self.device != "numpy" and weights >= WORTH_A_GPU
        largest = self.largest or (_largest_on(self.device) if on_gpu else LARGEST)
        return Computing(self.device if on_gpu else "numpy", largest, self.rows)

    def threads(self, weights: int) -> int:
        """Count the threads that are worth it for layers of so many weights."""
        if weights < WORTH_A_THREAD:
            return 1
        return 2 if self.device != "numpy" else min(self.cores or cores(), MOST_THREADS)

    def layers_together(self, weights: int, layers: int) -> int:
        """Count the layers of a tower, each of so many weights, that are measured together.

        It does not depend on the number of cores, so that they change no bit of a score.
        """
        computing = self.for_input(weights * layers)
        on_gpu = computing.device != "numpy"
        blocks, parts = (TOGETHER_ON_GPU, PARTS_ON_GPU) if on_gpu else (1, PARTS)
        if on_gpu and self.held:
            parts = 1
        most = layers if weights < WORTH_A_THREAD else -(-layers // parts)
        return max(1, min(most, blocks * computing.largest // max(1, weights)))


@cache
def _largest_on(device: str) -> int:
    """Count the weights of a block on a device of torch."""
    import torch

    if torch.device(device).type != "cuda":
        return LARGEST_ON_GPU
    memory = torch.cuda.get_device_properties(device).total_memory
    return max(LARGEST_ON_GPU, min(MOST_ON_GPU, memory // BYTES_A_WEIGHT))


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


@dataclass(frozen=True)
class HeadPart:
    """Some heads of one layer."""

    stored: StoredLayer
    heads: Ints

    def vectors(self, what: str, entries: Ints, input: int) -> Any:
        """Read vectors (entries, N, D) of an input; None where they are not stored."""
        return self.stored.as_stored(what, entries, input) if self.stored.has(what) else None

    def groups(self) -> tuple[Ints, Ints]:
        """Get the groups whose keys the heads read, and which of them each head reads."""
        size = self.stored.layer.heads // self.stored.layer.groups
        groups, group_of = np.unique(self.heads // size, return_inverse=True)
        return groups, group_of


Stack = Sequence[HeadPart]  # heads of layers that are computed alike: `StoredLayer.alike`


def row_blocks(
    stored: StoredLayer, input: int, heads: Ints, tokens: TokenTable,
    computing: Computing = HERE, seed: int = 0,
) -> Iterator[RowBlock]:  # fmt: skip
    """Yield the rows of an input in order, in blocks of at most `computing.largest` weights."""
    return stacked_blocks([HeadPart(stored, heads)], input, tokens, computing, seed)


def stacked_blocks(
    stack: Stack, input: int, tokens: TokenTable, computing: Computing = HERE, seed: int = 0
) -> Iterator[RowBlock]:
    """Yield the same for heads of several layers, one after the other."""
    stored = stack[0].stored
    n, m = stored.size(input)
    reader = _Reader(stack, input, computing)
    keys, square = reader.keys(tokens), stored.layer.queries == stored.layer.keys
    all_rows = computing.some_rows(n, seed)
    query = reader.queries(all_rows)
    chance_step = max(1, len(all_rows) // CHANCE_ROWS)
    step = max(1, computing.largest // (reader.heads * max(1, m)))
    for start in range(0, len(all_rows), step):
        rows = all_rows[start : start + step]
        on_device = computing.put(rows)
        of_rows = None if query is None else query[:, start : start + step]
        weights, seen, products, band = reader.weights(rows, of_rows, keys.vectors)
        first = None if band.first is None else computing.put(band.first)
        yield RowBlock(
            weights, on_device, seen, keys, square, of_rows, products, chance_step, band.whole,
            first, computing.fused,
        )  # fmt: skip


class SeenBand(NamedTuple):
    """What is known of the keys that rows see before any mask is looked at."""

    whole: int = 0  # so many first keys are seen by all rows
    first: Ints | None = None  # (R,) the first key of each row, where those seen are neighbours


@dataclass(frozen=True)
class _Reader:
    """Some heads of one input."""

    stack: Stack
    input: int
    computing: Computing

    @property
    def heads(self) -> int:
        return sum(len(part.heads) for part in self.stack)

    def queries(self, rows: Ints) -> Any:
        """Read the queries (H, R, D) of some rows; None where they are not stored."""
        parts = [part.vectors("query", part.heads, self.input) for part in self.stack]
        if any(part is None for part in parts):
            return None
        joined = self.computing.joined(parts)
        if len(rows) < joined.shape[1]:
            joined = joined[:, self.computing.put(rows)]
        return self.computing.put(joined)

    def keys(self, tokens: TokenTable) -> Keys:
        """Read what there is to know of the input's keys."""
        stream, put = self.stack[0].stored.layer.keys, self.computing.put
        vectors, values = (self._by_head(what) for what in ("key", "value"))
        place = tokens.places(self.input, stream)
        ids, special, punctuation = (put(marks) for marks in tokens.of(self.input, stream))
        place = None if place is None else put(place)
        return Keys(ids, special, punctuation, place, vectors, values)

    def _by_head(self, what: str) -> Any:
        """Read keys or values (H, M, D), those of its group for each head; None: not stored."""
        groups = [part.groups() for part in self.stack]
        parts = [
            part.vectors(what, own, self.input)
            for part, (own, _) in zip(self.stack, groups, strict=True)
        ]
        if any(part is None for part in parts):
            return None
        vectors = self.computing.put(self.computing.joined(parts))
        if len(vectors) == self.heads:
            return vectors
        starts = np.cumsum([0, *(len(own) for own, _ in groups[:-1])])
        group_of = [start + of for start, (_, of) in zip(starts, groups, strict=True)]
        return vectors[self.computing.put(np.concatenate(group_of))]

    def weights(self, rows: Ints, query: Any, key: Any) -> tuple[Any, Any, Any, SeenBand]:
        """Compute weights (H, R, M) of some rows, which keys are seen (R, M), and products q·k."""
        stored, heads, put = self.stack[0].stored, self.stack[0].heads, self.computing.put
        form = stored.only_form(self.input, heads, rows)  # alike for the whole stack
        if form is None or stored.has("weights"):
            weights = stored.weights(self.input, heads, rows)
            return put(weights), put(stored.seen(self.input, heads, rows)), None, SeenBand()
        xp, layer = namespace(query), stored.layer
        m = stored.size(self.input)[1]
        width = m if form.low == -UNBOUNDED else max(1, min(m, int(rows[-1]) - form.low + 1))
        on_device = put(rows)
        seen = _seen(form, on_device, numbers(on_device, width))
        if form.hidden is not None:
            seen = seen & ~put(form.hidden[:, :, :width])
        bias = form.added(len(rows), m)
        if bias is not None:
            bias = put(bias[:, :, :width].astype(np.float32))
        band = _band(form, rows, width)
        products = query @ key[:, :width].swapaxes(1, 2)
        sinks = [part.stored.sink(part.heads) for part in self.stack]
        sink = _joined([None if one is None else put(one.astype(np.float32)) for one in sinks])
        plain = bias is None and sink is None and layer.softcap is None and band.whole > 0
        if xp is not np and plain:
            weights = _plain_softmax(xp, products, layer.scale, seen)
        else:
            terms = products, layer.scale, layer.softcap, bias, seen
            weights = softmax.normalised(softmax.logits_of(*terms, xp, band.whole), sink, xp)
        return weights, seen[0] if len(seen) == 1 else seen.any(0), products, band


def _plain_softmax(xp: Any, products: Any, scale: float, seen: Any) -> Any:
    """Compute what `store/softmax.py` does, in fewer passes, where every row sees a key."""
    hidden = xp.where(seen, 0.0, -np.inf).to(products.dtype)
    return xp.softmax(xp.add(hidden, products, alpha=scale), -1)


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _joined(parts: list[Any]) -> Any:
    """Join arrays along their first axis; None where there are none."""
    if parts[0] is None or len(parts) == 1:
        return parts[0]
    return namespace(parts[0]).concatenate(parts)


def _band(form: Form, rows: Ints, width: int) -> SeenBand:
    """Tell what the band of a form says about the keys that sorted rows see."""
    if form.hidden is not None:
        return SeenBand()
    if form.high == UNBOUNDED:
        whole = width if form.low == -UNBOUNDED else int(rows[0]) - form.low + 1
        return SeenBand(max(0, min(width, whole)), np.zeros(len(rows), np.int64))
    return SeenBand(0, np.clip(rows - form.high, 0, width - 1).astype(np.int64))


def _seen(form: Form, rows: Any, columns: Any) -> Any:
    """Tell which keys are inside the band of a form; returns (1, R, M)."""
    offset = rows[:, None] - columns
    if form.high == UNBOUNDED:
        return (offset >= form.low)[None]
    return ((offset >= form.low) & (offset <= form.high))[None]
