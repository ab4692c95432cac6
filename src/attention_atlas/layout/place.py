"""Where does a new text fall on a map that is already there?

The map does not move. A new point starts where its nearest known point lies and settles under the
forces of the method that made the map, from its known neighbours and all other points.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from attention_atlas.layout.methods import FEWEST, METHODS, find_method
from attention_atlas.layout.neighbours import Neighbours, find_neighbours
from attention_atlas.names.errors import InputError

NEIGHBOURS = 15
STEPS = 60
LONGEST_STEP = 0.5
OTHERS_SEEN = 2048  # points sampled to push a new one, in place of all

# New places, places of the known neighbours, how near they are, other places → a step.
Force = Callable[[Tensor, Tensor, Neighbours, Tensor], Tensor]


@dataclass(frozen=True)
class Known:
    """A map as it stands: its points (heads, N, width), where they lie, how distance is meant."""

    points: Tensor
    places: Tensor  # (heads, N, dims)
    metric: str


def place(new: Tensor, known: Known, method: str) -> Tensor:
    """Place new points (heads, M, width) from `as_points`; returns (heads, M, dims)."""
    chosen = find_method(method, known.places.shape[2])
    points = known.points
    if new.shape[0] != points.shape[0] or new.shape[2] != points.shape[2]:
        raise InputError(
            f"new points {tuple(new.shape)} do not fit the map's {tuple(points.shape)}; "
            "heads and width must agree"
        )
    if points.shape[1] < FEWEST:
        chosen = METHODS["pca"]
    placed: Tensor = chosen.code.place(new, known)
    return placed


def settle(new: Tensor, known: Known, force: Force) -> Tensor:
    """Let new points settle under a force; returns their places (heads, M, dims)."""
    near = find_neighbours(new, NEIGHBOURS, known.metric, among=known.points)
    heads, count, k = near.index.shape
    places, dims = known.places, known.places.shape[2]
    flat = near.index.reshape(heads, -1, 1).expand(-1, -1, dims)
    partners = places.gather(1, flat).view(heads, count, k, dims)
    others = places[:, :: max(1, places.shape[1] // OTHERS_SEEN)]
    placed = partners[:, :, 0].clone()
    for step in range(STEPS):
        move = force(placed, partners, near, others)
        length = move.norm(dim=2, keepdim=True).clamp_min(LONGEST_STEP)
        placed += (1 - step / STEPS) * move * (LONGEST_STEP / length)
    return placed
