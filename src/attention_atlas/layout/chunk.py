"""How does one chunk of heads become its part of a map?"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from attention_atlas.layout.attended import AttentionGraph, attention_graph
from attention_atlas.layout.fidelity import Dots, TokenInputs, fidelity
from attention_atlas.layout.joint import join
from attention_atlas.layout.looks import Looks, find_looks
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import Neighbours, as_points, find_neighbours
from attention_atlas.layout.packed import packed_places
from attention_atlas.layout.plan import Options, Task, made_of_attention
from attention_atlas.layout.sight import Sight, Sights, read_sight
from attention_atlas.names.head import Head
from attention_atlas.store.cores import each
from attention_atlas.store.files import Array
from attention_atlas.store.maps import FIGURES
from attention_atlas.store.reader import StoredAtlas

CELLS_TOGETHER = 1 << 27  # heads × cells of a block that are computed at once


class ChunkVectors(NamedTuple):
    """The queries and keys of some heads on the tokens of a map, as they are stored."""

    queries: list[Tensor]  # by layer: (heads of the layer, N, width)
    keys: list[Tensor]


def read_vectors(atlas: StoredAtlas, task: Task, heads: tuple[str, ...]) -> ChunkVectors:
    """Read what a chunk is laid out from, layer by layer; needs no device."""
    layers = [names for _, names in by_layer(heads)]
    wanted = [("query", names, task.queries) for names in layers]
    wanted += [("key", names, task.keys) for names in layers]
    read = each(lambda one: torch.from_numpy(atlas.layer_vectors(*one)), wanted)
    return ChunkVectors(read[: len(layers)], read[len(layers) :])


def make_chunk(
    atlas: StoredAtlas, options: Options, task: Task, heads: tuple[str, ...],
    vectors: ChunkVectors | None = None,
) -> dict[str, Array]:  # fmt: skip
    """Lay out some heads of a task; gives the arrays of a map, one row a head.

    `vectors` are those of `read_vectors`, read here if not given. `bad` are heads whose vectors
    hold NaN or infinity: they have no map, the others do.
    """
    device = torch.device(options.device)
    vectors = read_vectors(atlas, task, heads) if vectors is None else vectors
    queries, keys = (torch.cat([part.to(device).float() for part in parts]) for parts in vectors)
    bad = ~(queries.isfinite().all(2).all(1) & keys.isfinite().all(2).all(1))  # (heads,)
    queries[bad], keys[bad] = 0, 0  # all points of such a head fall on one place
    joint = join(queries, keys, options.joint)
    points = as_points(joint.points(queries, keys), joint.metric)
    sights = _sights(atlas, task, heads, device)
    near: Neighbours | AttentionGraph
    neighbours = METHODS[options.method].neighbours
    if made_of_attention(vars(options)):
        near = attention_graph(queries, keys, looks_of(queries, keys, sights), sights)
    else:
        near = find_neighbours(points, neighbours or 1, joint.metric)
    places = lay_out(points, options.method, options.dims, near, options.seed)
    inputs = TokenInputs(sights[0][0].query_inputs, sights[0][0].key_inputs)
    figures = fidelity(points, Dots(queries, keys, inputs), sights, places, options.seed)
    packed, box = packed_places(places)
    fidelities = torch.stack([figures[name] for name in FIGURES], 1).float()
    fidelities[bad] = torch.nan
    return {
        "places": packed,
        "box": box,
        "c": joint.c.cpu().numpy(),
        "fidelity": fidelities.cpu().numpy(),
        "bad": bad.cpu().numpy(),
    }


def looks_of(queries: Tensor, keys: Tensor, sights: Sights) -> Looks:
    """Find what the queries of all heads look at, layer by layer."""
    parts = [find_looks(queries[here], keys[here], sight, layer) for sight, layer, here in sights]
    return Looks(
        torch.cat([part.key for part in parts]),
        torch.cat([part.logit for part in parts]),
        torch.cat([part.seen for part in parts]),
        torch.cat([part.ordinary for part in parts]),
    )


def _sights(
    atlas: StoredAtlas, task: Task, heads: tuple[str, ...], device: torch.device
) -> list[tuple[Sight, slice, slice]]:
    """Return each sight with the heads of its layer, and its heads among `heads`.

    Layers that mask alike have one sight, and are computed as one as far as memory allows.
    """
    first, sights = 0, list[tuple[Sight, slice, slice]]()
    for layer, names in by_layer(heads):
        group = [Head.parse(name) for name in names]
        key = _masking(atlas, names[0], task) or layer
        if key not in task.sights:
            task.sights.clear()  # a long input's masks are large, and layers come one after another
            task.sights[key] = read_sight(atlas, names[0], task.points, device)
        sight, here = task.sights[key], slice(first, first + len(group))
        first = here.stop
        if sights and sights[-1][0] is sight:
            begin = sights[-1][2].start
            if (first - begin) * sight.cells <= CELLS_TOGETHER:
                sights[-1] = sight, slice(0, first - begin), slice(begin, first)
                continue
        sights.append((sight, slice(group[0].head, group[-1].head + 1), here))
    return sights


def _masking(atlas: StoredAtlas, head: str, task: Task) -> tuple[object, ...] | None:
    """Return what layers have in common that see alike; None if this one has a mask of its own."""
    inputs = sorted({*task.points.query_inputs.tolist(), *task.points.key_inputs.tolist()})
    forms = [atlas.layer_form(head, number) for number in inputs]
    return None if None in forms else tuple(forms)


def by_layer(heads: Iterable[str]) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """Yield each layer (tower, number) with those of the heads that are in it."""

    def layer_of(name: str) -> tuple[str, int]:
        head = Head.parse(name)
        return head.tower, head.layer

    for layer, names in groupby(heads, layer_of):
        yield layer, list(names)
