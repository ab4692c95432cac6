"""Where do the tokens of a new input lie on the maps of an atlas?

Each head's normalisation is fitted again to the tokens of its map, which gives the same numbers as
when the map was made; then `place` lets the new points settle among the old ones.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attention_atlas.layout.device import one_thread
from attention_atlas.layout.joint import join
from attention_atlas.layout.neighbours import as_points
from attention_atlas.layout.place import Known, place
from attention_atlas.names.head import Head
from attention_atlas.store.maps import Float32, Map, MapHeads
from attention_atlas.store.reader import StoredAtlas

Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def place_input(
    atlas: StoredAtlas, made: Map, group: MapHeads, rows: Callable[[str], Rows], added: StoredAtlas
) -> Float32:
    """Place all tokens of `added` on a map; returns (heads, N + M, dims), 0 to 1 in each box.

    `rows` tells where the tokens of the map stand among a head's queries and keys.
    """
    asked = made.options["asked"]
    placed = []
    with one_thread(torch.device("cpu")):
        for heads in _layers(group.heads):
            picked = [group.heads.index(head) for head in heads]
            queries = _stack([atlas.queries(head)[rows(head)[0]] for head in heads])
            keys = _stack([atlas.keys(head)[rows(head)[1]] for head in heads])
            joint = join(queries, keys, asked["joint"])
            known = as_points(joint.points(queries, keys), joint.metric)
            fresh = joint.points(
                _stack([added.queries(head) for head in heads]),
                _stack([added.keys(head) for head in heads]),
            )
            low, high = (torch.from_numpy(group.box[picked, side])[:, None] for side in (0, 1))
            wide = (high - low).clamp_min(torch.finfo(torch.float32).tiny)
            places = low + torch.from_numpy(group.places[picked].astype(np.float32)) / 65535 * wide
            new_places = place(
                as_points(fresh, joint.metric), Known(known, places, joint.metric), asked["method"]
            )
            placed.append(((new_places - low) / wide).numpy().astype(np.float32))
    return np.concatenate(placed)


def _stack(vectors: Sequence[Float32]) -> Tensor:
    return torch.from_numpy(np.stack(vectors)).float()


def _layers(heads: Sequence[str]) -> Iterator[list[str]]:
    """Yield the heads layer by layer: they have one width, and their vectors fit in memory."""
    for _, together in groupby(heads, lambda name: Head.parse(name).layer):
        yield list(together)
