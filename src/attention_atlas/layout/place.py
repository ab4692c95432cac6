"""Where does a new text fall on a map that is already there?

The map does not move. A new point starts where its nearest known point lies and settles
under the forces of the method that made the map, from its known neighbours and all other points.
PCA needs no settling: the axes are fitted again and the new points projected on them.
"""

from collections.abc import Callable

from torch import Tensor

from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.fuzzy import memberships
from attention_atlas.layout.methods import FEWEST, check_method
from attention_atlas.layout.neighbours import Neighbours, find_neighbours
from attention_atlas.layout.pca import fit_axes
from attention_atlas.layout.umap import FORCE, OTHERS, A, B
from attention_atlas.names.errors import InputError

NEIGHBOURS = 15
PERPLEXITY = 5.0  # a new point has few neighbours to obey
STEPS = 60
LONGEST_STEP = 0.5
OTHERS_SEEN = 2048  # points that stand for all in what pushes a new one


def place(new: Tensor, points: Tensor, places: Tensor, method: str, metric: str) -> Tensor:
    """Places (heads, M, dims) of new points (heads, M, width), both from `as_points`."""
    dims = places.shape[2]
    check_method(method, dims)
    if new.shape[0] != points.shape[0] or new.shape[2] != points.shape[2]:
        raise InputError(
            f"new points {tuple(new.shape)} do not fit the map's {tuple(points.shape)}; "
            "heads and width must agree"
        )
    if method == "pca" or points.shape[1] < FEWEST:
        return fit_axes(points, dims).project(new)
    near = find_neighbours(new, NEIGHBOURS, metric, among=points)
    return _settle(near, places, FORCES[method])


Force = Callable[[Tensor, Tensor, Neighbours, Tensor], Tensor]


def tsne_force(at: Tensor, known: Tensor, near: Neighbours, others: Tensor) -> Tensor:
    """Down the slope of each new point's own divergence."""
    apart = at[:, :, None] - known  # (heads, M, k, dims)
    weight = affinities(near, PERPLEXITY) / (1 + apart.square().sum(3))
    pull = (weight[..., None] * apart).sum(2)
    away = at[:, :, None] - others[:, None]  # (heads, M, others, dims)
    close = 1 / (1 + away.square().sum(3))
    push = (close.square()[..., None] * away).sum(2) / close.sum(2, keepdim=True)
    return push - pull


def umap_force(at: Tensor, known: Tensor, near: Neighbours, others: Tensor) -> Tensor:
    """What umap-learn's draws come to on average."""
    weight = memberships(near)[..., None]
    apart = at[:, :, None] - known
    square = apart.square().sum(3, keepdim=True).clamp_min(1e-12)
    strength = 2 * A * B * square.pow(B - 1) / (1 + A * square.pow(B))
    pull = (weight * (strength * apart).clamp(-FORCE, FORCE)).sum(2)
    away = at[:, :, None] - others[:, None]
    square = away.square().sum(3, keepdim=True)
    strength = 2 * B / ((0.001 + square) * (1 + A * square.pow(B)))
    push = (strength * away).clamp(-FORCE, FORCE).mean(2) * OTHERS * weight.sum(2)
    return (push - pull) / weight.sum(2).clamp_min(1e-12)


FORCES: dict[str, Force] = {"tsne": tsne_force, "umap": umap_force}


def _settle(near: Neighbours, places: Tensor, force: Force) -> Tensor:
    heads, count, k = near.index.shape
    dims = places.shape[2]
    flat = near.index.reshape(heads, -1, 1).expand(-1, -1, dims)
    known = places.gather(1, flat).view(heads, count, k, dims)
    others = places[:, :: max(1, places.shape[1] // OTHERS_SEEN)]
    at = known[:, :, 0].clone()
    for step in range(STEPS):
        move = force(at, known, near, others)
        length = move.norm(dim=2, keepdim=True).clamp_min(LONGEST_STEP)
        at += (1 - step / STEPS) * move * (LONGEST_STEP / length)
    return at
