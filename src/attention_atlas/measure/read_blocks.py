"""How is an atlas gone through in blocks of rows, so that no input is ever whole in memory?

The vectors of one layer and shard are read once; weights are recomputed from them for a few rows at
a time. All of `measure` reads weights here.
"""

from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.row_block import Bools, Floats, Keys, RowBlock
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.names.errors import StoreError
from attention_atlas.store import softmax
from attention_atlas.store.files import Array
from attention_atlas.store.form import Form
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.shard import unpack_form

LARGEST = 1_000_000  # weights at once, a few megabytes
Rows = npt.NDArray[np.intp]


class LayerRows:
    """The rows of one layer for the inputs of one shard."""

    def __init__(self, atlas: StoredAtlas, number: int, tower: Tower, layer: Layer):
        self.layer, self._shard = layer, atlas.shard(number)
        self.stem = f"{tower.name}.L{layer.layer}"
        self._stored = f"{self.stem}.weights" in self._shard.names
        if not self._stored and not {f"{self.stem}.query", f"{self.stem}.key"} <= self._shard.names:
            raise StoreError(
                f"{atlas.path.name} holds neither weights nor queries and keys; capture it again"
            )
        table = self._shard.tensor(f"{self.stem}.blocks")
        sizes = [(n, m, int(n) * int(m)) for _, n, m in table[:, :3]]
        self._starts = np.cumsum([(0, 0, 0), *sizes], axis=0)  # queries, keys, pairs before each
        self._table = table
        self.inputs = [int(number) for number in np.unique(table[:, 0])]
        self._form = lru_cache(8)(self._unpacked)  # masks are unpacked once an input

    @cached_property
    def query(self) -> Array | None:
        """(H, all rows, D)"""
        return self._read("query")

    @cached_property
    def key(self) -> Array | None:
        """(G, all keys, D)"""
        return self._read("key")

    @cached_property
    def value(self) -> Array | None:
        """(G, all keys, E)"""
        return self._read("value")

    @cached_property
    def sink(self) -> Array | None:
        """(H,), where the layer has sinks"""
        return self._read("sink") if self.layer.sink else None

    def span(self, input: int) -> tuple[slice, slice]:
        """Where the queries and the keys of an input lie."""
        mine = np.flatnonzero(self._table[:, 0] == input)
        (q0, k0, _), (q1, k1, _) = self._starts[mine[0]], self._starts[mine[-1] + 1]
        return slice(int(q0), int(q1)), slice(int(k0), int(k1))

    def size(self, input: int) -> tuple[int, int]:
        """How many rows and keys an input has."""
        queries, keys = self.span(input)
        return queries.stop - queries.start, keys.stop - keys.start

    def weights(self, input: int, heads: range, rows: Rows) -> tuple[Floats, Bools]:
        """(H, R, M) and (R, M): the weights of some rows, and the keys that any head may see."""
        queries, keys = self.span(input)
        weights = np.zeros((len(heads), len(rows), keys.stop - keys.start), np.float32)
        seen = np.zeros(weights.shape[1:], bool)
        for problem in np.flatnonzero(self._table[:, 0] == input):
            q, k, _ = (int(start) for start in self._starts[problem])
            n, m = (int(size) for size in self._table[problem, 1:3])
            here = np.flatnonzero((rows >= q - queries.start) & (rows < q - queries.start + n))
            if here.size:
                local, columns = (
                    rows[here] + queries.start - q,
                    slice(k - keys.start, k - keys.start + m),
                )
                form = self._form(int(problem)).of(heads)
                seen[here, columns] = form.visible(n, m, local).any(0)
                weights[:, here, columns] = self._problem(int(problem), heads, local, form)
        return weights, seen

    def _problem(self, problem: int, heads: range, local: Rows, form: Form) -> Floats:
        """(H, R, m): some rows of one softmax problem, stored or recomputed."""
        q, k, w = (int(start) for start in self._starts[problem])
        n, m = (int(size) for size in self._table[problem, 1:3])
        if self._stored:
            return np.stack([self._stored_rows(head, w, m, local) for head in heads])
        assert self.query is not None and self.key is not None
        own = slice(heads.start, heads.stop)
        return softmax.weights(
            self.query[own, q + local], self.key[self.groups(heads), k : k + m],
            scale=self.layer.scale, softcap=self.layer.softcap,
            sink=None if self.sink is None else self.sink[own], form=form, rows=local, n=n,
        )  # fmt: skip

    def _stored_rows(self, head: int, start: int, m: int, local: Rows) -> Floats:
        """(R, m): read a run of consecutive rows at a time."""
        runs = np.split(local, np.flatnonzero(np.diff(local) != 1) + 1)
        name = f"{self.stem}.weights"
        spans = [(start + int(run[0]) * m, start + int(run[-1] + 1) * m) for run in runs]
        flat = [self._shard.part(name, head, first, last) for first, last in spans]
        return np.asarray(np.concatenate(flat).reshape(-1, m), np.float32)

    def groups(self, heads: range) -> slice:
        """The groups that some heads read."""
        size = self.layer.heads // self.layer.groups
        return slice(heads.start // size, (heads.stop - 1) // size + 1)

    def _read(self, what: str) -> Array | None:
        name = f"{self.stem}.{what}"
        return self._shard.tensor(name) if name in self._shard.names else None

    def _unpacked(self, problem: int) -> Form:
        return unpack_form(self._table[problem], self._shard.tensor, self._shard.names)


def head_ranges(layer: Layer, keys: int, largest: int = LARGEST) -> Iterator[range]:
    """Heads of which one row fits into memory together: all of them, or some whole groups."""
    size = layer.heads // layer.groups
    step = max(1, largest // max(1, keys) // size) * size
    for start in range(0, layer.heads, step):
        yield range(start, min(start + step, layer.heads))


def row_blocks(
    layer_rows: LayerRows, input: int, heads: range, tokens: TokenTable, largest: int = LARGEST
) -> Iterator[RowBlock]:
    """All rows of an input, in order, for some heads, in blocks of at most `largest` weights."""
    n, m = layer_rows.size(input)
    queries, _ = layer_rows.span(input)
    keys, own = _keys(layer_rows, input, heads, tokens), slice(heads.start, heads.stop)
    square = layer_rows.layer.queries == layer_rows.layer.keys
    step = max(1, largest // (len(heads) * max(1, m)))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        weights, seen = layer_rows.weights(input, heads, rows)
        query = None
        if layer_rows.query is not None:
            query = layer_rows.query[own, queries.start + rows].astype(np.float32)
        yield RowBlock(weights, rows, seen, keys, square, query)


def _keys(layer_rows: LayerRows, input: int, heads: range, tokens: TokenTable) -> Keys:
    layer, (_, span) = layer_rows.layer, layer_rows.span(input)
    groups, size = layer_rows.groups(heads), layer.heads // layer.groups

    def by_head(shared: Array | None) -> Floats | None:
        """(H, M, …) from (G, M, …): heads of a group read the same."""
        if shared is None:
            return None
        return np.repeat(shared[groups, span].astype(np.float32), size, axis=0)

    return Keys(
        *tokens.of(input, layer.keys), tokens.places(input, layer.keys), by_head(layer_rows.key),
        by_head(layer_rows.value),
    )  # fmt: skip
