"""How does one chunk of heads become its part of a map?"""

from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from attention_atlas.layout.attended import AttentionGraph, attention_graph
from attention_atlas.layout.fidelity import Dots, TokenInputs, fidelity
from attention_atlas.layout.joint import join
from attention_atlas.layout.looks import Looks, find_looks
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import Neighbours, as_points, find_neighbours
from attention_atlas.layout.plan import Options, Task, made_of_attention
from attention_atlas.layout.sample import Numbers
from attention_atlas.layout.sight import Sight, Sights, read_sight
from attention_atlas.names.head import Head
from attention_atlas.store.files import Array
from attention_atlas.store.maps import FIGURES, pack
from attention_atlas.store.reader import StoredAtlas


def make_chunk(
    atlas: StoredAtlas, options: Options, task: Task, heads: tuple[str, ...]
) -> dict[str, Array]:
    """Lay out some heads of a task; gives the arrays of a map, one row a head.

    `bad` are heads whose vectors hold NaN or infinity: they have no map, the others do.
    """
    device = torch.device(options.device)

    def read(vectors: Callable[[str], Array], rows: Numbers) -> Tensor:
        stacked = np.stack([vectors(head)[rows] for head in heads])
        return torch.from_numpy(stacked).to(device).float()

    queries, keys = read(atlas.queries, task.queries), read(atlas.keys, task.keys)
    bad = ~(queries.isfinite().all(2).all(1) & keys.isfinite().all(2).all(1))  # (heads,)
    queries[bad], keys[bad] = 0, 0  # all points of such a head fall on one place
    joint = join(queries, keys, options.joint)
    points = as_points(joint.points(queries, keys), joint.metric)
    sights = list(_sights(atlas, task, heads, device))
    near: Neighbours | AttentionGraph
    neighbours = METHODS[options.method].neighbours
    if made_of_attention(vars(options)):
        near = attention_graph(queries, keys, looks_of(queries, keys, sights), sights)
    else:
        near = find_neighbours(points, neighbours or 1, joint.metric)
    places = lay_out(points, options.method, options.dims, near, options.seed)
    inputs = TokenInputs(sights[0][0].query_inputs, sights[0][0].key_inputs)
    figures = fidelity(points, Dots(queries, keys, inputs), sights, places, options.seed)
    packed, box = pack(places.cpu().numpy())
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
) -> Iterator[tuple[Sight, slice, slice]]:
    """Yield the sight of each layer, its heads within the layer, and among `heads`."""
    named = [Head.parse(head) for head in heads]
    first = 0
    for layer, together in groupby(named, lambda head: (head.tower, head.layer)):
        group = list(together)
        if layer not in task.sights:
            task.sights.clear()  # a long input's masks are large, and layers come one after another
            task.sights[layer] = read_sight(atlas, heads[first], task.points, device)
        in_layer = slice(group[0].head, group[-1].head + 1)
        yield task.sights[layer], in_layer, slice(first, first + len(group))
        first += len(group)
