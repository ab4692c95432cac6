"""Where does a new text fall on a map that is already there?

The map does not move. A new point starts where its nearest known point lies and settles under the
forces of the method that made the map, from its known neighbours and all other points. Where many
are placed, the push of all other points is read from a mesh (`field`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from torch import Tensor

from attention_atlas.layout.field import Field, make_field
from attention_atlas.layout.methods import FEWEST, METHODS, find_method
from attention_atlas.layout.neighbours import Neighbours, find_neighbours
from attention_atlas.names.errors import InputError

NEIGHBOURS = 15
STEPS = 20
LONGEST_STEP = 0.5
OTHERS_SEEN = 2048  # points sampled to push a new one, in place of all

Push = Callable[[Tensor, Tensor], Tensor]  # places (heads, M, dims), other places → steps


@dataclass(frozen=True)
class Settling:
    """How a method moves a new point: towards its known neighbours, away from all other points."""

    strengths: Callable[[Neighbours], Tensor]  # of each neighbour, (heads, M, k)
    pull: Callable[[Tensor, Tensor, Tensor], Tensor]  # places, neighbours' places, strengths → step
    push: Push


@dataclass(frozen=True, eq=False)  # known by identity, so that its field can be kept
class Known:
    """A map as it stands: its points (heads, N, width), where they lie, how distance is meant."""

    points: Tensor
    places: Tensor  # (heads, N, dims)
    metric: str
    often: bool = False  # whether many points are placed on it, so that a field is worth making


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


def settle(new: Tensor, known: Known, forces: Settling) -> Tensor:
    """Let new points settle under forces; returns their places (heads, M, dims)."""
    near = find_neighbours(new, NEIGHBOURS, known.metric, among=known.points)
    heads, count, k = near.index.shape
    dims = known.places.shape[2]
    flat = near.index.reshape(heads, -1, 1).expand(-1, -1, dims)
    partners = known.places.gather(1, flat).view(heads, count, k, dims)
    strengths = forces.strengths(near)
    placed = partners[:, :, 0].clone()
    field = _field(known, forces.push) if known.often else None
    for step in range(STEPS):
        push = field.at(placed) if field else forces.push(placed, _others(known))
        move = push + forces.pull(placed, partners, strengths)
        length = move.norm(dim=2, keepdim=True).clamp_min(LONGEST_STEP)
        placed += (1 - step / STEPS) * move * (LONGEST_STEP / length)
    return placed


def _others(known: Known) -> Tensor:
    return known.places[:, :: max(1, known.places.shape[1] // OTHERS_SEEN)]


@lru_cache(maxsize=1)
def _field(known: Known, push: Push) -> Field:
    others = _others(known)
    return make_field(known.places, lambda places: push(places, others))
