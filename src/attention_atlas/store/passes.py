"""How is a whole atlas gone through once, in bounded memory?

A shard and layer at a time: its vectors are read once, and each input's weights are recomputed from
them, a few heads together where the input is long. For one head ask
`StoredAtlas.weights`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import StoreError
from attention_atlas.store import softmax
from attention_atlas.store.files import Array
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import Float32, Shard, StoredAtlas
from attention_atlas.store.shard import unpack_form

LARGEST = 4_000_000  # weights at once


@dataclass(frozen=True)
class Piece:
    """What some heads of a layer did on one input; vectors are None where they were not kept."""

    input: int
    heads: range
    weights: Float32  # (H, N, M)
    seen: npt.NDArray[np.bool_]  # (N, M): keys that any of these heads may look at
    query: Float32 | None  # (H, N, D)
    key: Float32 | None  # (G', M, D): of the groups that these heads read
    value: Float32 | None  # (G', M, E)


def pieces(
    atlas: StoredAtlas, number: int, tower: Tower, layer: Layer, only: set[int] | None = None
) -> Iterator[Piece]:
    """Every input of shard `number` (or those in `only`), in order, in one layer."""
    shard, stem = atlas.shard(number), f"{tower.name}.L{layer.layer}"
    table = shard.tensor(f"{stem}.blocks")
    held = {what: _read(shard, f"{stem}.{what}") for what in ("query", "key", "value", "weights")}
    if held["weights"] is None and (held["query"] is None or held["key"] is None):
        raise StoreError(
            f"{atlas.path.name} holds neither weights nor queries and keys; capture it again"
        )
    sink = shard.tensor(f"{stem}.sink") if layer.sink else None
    starts = np.cumsum(
        np.vstack([[0, 0, 0], [(n, m, int(n) * int(m)) for _, n, m in table[:, :3]]]),
        axis=0,
    )
    for one in np.unique(table[:, 0]):
        if only is not None and int(one) not in only:
            continue
        mine = np.flatnonzero(table[:, 0] == one)
        n, m = (int(table[mine, axis].sum()) for axis in (1, 2))
        for heads in _slices(layer, n * m):
            yield _piece(shard, layer, table, mine, starts, held, sink, heads)


def _read(shard: Shard, name: str) -> Array | None:
    return shard.tensor(name) if name in shard.names else None


def _slices(layer: Layer, pairs: int) -> Iterator[range]:
    """Heads that fit into memory together: whole groups, all of them if they do."""
    group = layer.heads // layer.groups
    step = max(1, LARGEST // max(1, pairs) // group) * group
    for start in range(0, layer.heads, step):
        yield range(start, min(start + step, layer.heads))


def _piece(
    shard: Shard, layer: Layer, table: npt.NDArray[np.int32], mine: npt.NDArray[np.intp],
    starts: npt.NDArray[np.int64], held: dict[str, Array | None], sink: Array | None, heads: range,
) -> Piece:  # fmt: skip
    (q0, k0, _), (q1, k1, _) = starts[mine[0]], starts[mine[-1] + 1]
    group = layer.heads // layer.groups
    own = slice(heads.start, heads.stop)
    shared = slice(heads.start // group, (heads.stop - 1) // group + 1)
    weights = np.zeros((len(heads), q1 - q0, k1 - k0), np.float32)
    seen = np.zeros(weights.shape[1:], bool)
    for block in mine:
        q, k, w = starts[block]
        n, m = (int(size) for size in table[block, 1:3])
        form = unpack_form(table[block], shard.tensor, shard.names).of(heads)
        here = slice(q - q0, q - q0 + n), slice(k - k0, k - k0 + m)
        seen[here] = form.visible(n, m).any(0)
        if held["weights"] is not None:
            flat = held["weights"][own, w : w + n * m]
            weights[:, here[0], here[1]] = flat.reshape(len(heads), n, m)
        else:
            assert held["query"] is not None and held["key"] is not None
            weights[:, here[0], here[1]] = softmax.weights(
                held["query"][own, q : q + n], held["key"][shared, k : k + m], scale=layer.scale,
                softcap=layer.softcap, sink=None if sink is None else sink[own], form=form,
            )  # fmt: skip
    return Piece(
        int(table[mine[0], 0]), heads, weights, seen, _rows(held["query"], own, q0, q1),
        _rows(held["key"], shared, k0, k1), _rows(held["value"], shared, k0, k1),
    )  # fmt: skip


def _rows(array: Array | None, heads: slice, start: int, stop: int) -> Float32 | None:
    return None if array is None else array[heads, start:stop].astype(np.float32)
