"""How does a GPU get ready while the vectors of the first chunk are read?

The first call of each kernel loads it, or compiles it, which takes a second or two in all. So a few
made-up points are laid out first, by the same steps, and nothing is kept of them.
"""

from functools import cache

import numpy as np
import torch

from attention_atlas.layout.attended import attention_graph
from attention_atlas.layout.fidelity import Dots, TokenInputs, fidelity
from attention_atlas.layout.joint import join
from attention_atlas.layout.looks import find_looks
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours, largest
from attention_atlas.layout.plan import Options, made_of_attention
from attention_atlas.layout.sight import MapTokens, plain_sight

TOKENS, HEADS = 96, 2


@cache
def warm_up(options: Options, queries: int, keys: int, width: int) -> None:
    """Lay out made-up points on the device of the options, for maps of so many tokens.

    width  of a vector, since kernels are compiled for it
    """
    device, dice = torch.device(options.device), torch.Generator().manual_seed(0)
    q, k = (torch.randn(HEADS, TOKENS, width, generator=dice).to(device) for _ in range(2))
    inputs, places = np.zeros(TOKENS, np.int64), np.arange(TOKENS)
    ordinary = np.zeros(TOKENS, bool)
    tokens = MapTokens(inputs, inputs, places, places, ordinary, ordinary)
    sight = plain_sight(tokens, True, device)
    sights = [(sight, slice(0, HEADS), slice(0, HEADS))]
    joint = join(q, k, options.joint)
    points = as_points(joint.points(q, k), joint.metric)
    if made_of_attention(vars(options)):
        looks = find_looks(q, k, sight, slice(0, HEADS))
        laid = lay_out(points, options.method, options.dims, attention_graph(q, k, looks, sights))
    else:
        near = find_neighbours(points, METHODS[options.method].neighbours or 1, joint.metric)
        laid = lay_out(points, options.method, options.dims, near)
    of = TokenInputs(sight.query_inputs, sight.key_inputs)
    fidelity(points, Dots(q, k, of), sights, laid)
    for count in {queries, keys}:  # a kernel of its own for rows so long
        largest(torch.zeros(1, 1, count, device=device), 1)
