"""How does one chunk of heads become its part of a map?"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from attention_atlas.layout.fidelity import Dots, Fidelity, TokenInputs, fidelity
from attention_atlas.layout.joint import join
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.plan import Options, Task
from attention_atlas.layout.sample import Numbers
from attention_atlas.names.errors import InputError
from attention_atlas.store.files import Array
from attention_atlas.store.maps import FIGURES, pack
from attention_atlas.store.reader import StoredAtlas


def make_chunk(
    atlas: StoredAtlas, options: Options, task: Task, heads: tuple[str, ...]
) -> dict[str, Array]:
    """Lay out some heads of a task; gives the arrays of a map, one row a head."""
    device = torch.device(options.device)

    def read(vectors: Callable[[str], Array], rows: Numbers) -> Tensor:
        return torch.from_numpy(np.stack([vectors(head)[rows] for head in heads])).to(device)

    queries, keys = read(atlas.queries, task.queries), read(atlas.keys, task.keys)
    try:
        joint = join(queries.float(), keys.float(), options.joint)
        points = as_points(joint.points(queries, keys), joint.metric)
    except InputError as problem:
        raise InputError(f"heads {heads[0]} to {heads[-1]}: {problem}") from problem
    near = find_neighbours(points, METHODS[options.method].neighbours or 1, joint.metric)
    places = lay_out(points, options.method, options.dims, near, options.seed)
    tokens = TokenInputs(*(torch.from_numpy(inputs).to(device) for inputs in task.inputs))
    figures = fidelity(points, Dots(queries, keys, tokens), places, options.seed)
    packed, box = pack(places.cpu().numpy())
    return {
        "places": packed,
        "box": box,
        "c": joint.c.cpu().numpy(),
        "fidelity": _columns(figures),
    }


def _columns(figures: Fidelity) -> Array:
    """Stack the figures in the order of FIGURES: (heads, 10)."""
    columns = [figures.full]
    for of in (figures.map, figures.pca, figures.shuffled):
        columns += [of.correlation, of.trust, of.kept]
    assert len(columns) == len(FIGURES)
    return torch.stack(columns, 1).float().cpu().numpy()
