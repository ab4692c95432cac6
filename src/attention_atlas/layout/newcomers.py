"""Where do new tokens lie on a map that is made of attention?

The map stays as it is. A new query starts among the queries of the map that would attend like it,
a new key among its like, each under the forces of the method that made the map. Then every new
query looks at the keys of its own input (`looks.py`), and queries and keys move until the map
attends as the head does, without going far from where they started. A token that the map has
already lies where it lay.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from attention_atlas.layout.alike import Kinship, fit_kinship
from attention_atlas.layout.looks import Looks, make_gaze
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.place import Known, place
from attention_atlas.store.maps import SIDES

TURNS = 40
LENGTH = 6.0  # of a step at the beginning
BACK = 0.03  # share of the way back to the start after each step
SAME = 0.01  # of the mean length: a point as near as this to a known one is its copy


@dataclass(frozen=True)
class AttentionMap:
    """A map as it stands: its queries (heads, N, width), keys (heads, M, width), where they lie."""

    queries: Tensor
    keys: Tensor
    places: Tensor  # (heads, N + M, dims)
    often: bool = False  # whether many points are placed on it

    @cached_property
    def kin(self) -> Kinship:
        return fit_kinship(self.queries, self.keys)

    @cached_property
    def sides(self) -> tuple[Known, Known]:
        """Return the queries and the keys, each as a map of its own."""
        split = self.queries.shape[1]
        return (
            Known(self.kin.queries(self.queries), self.places[:, :split], "euclidean", self.often),
            Known(self.kin.keys(self.keys), self.places[:, split:], "euclidean", self.often),
        )

    def place(self, queries: Tensor, keys: Tensor, looks: Looks, method: str) -> Tensor:
        """Place the queries and keys of new inputs; returns (heads, N' + M', dims)."""
        sides = ((queries, "query"), (keys, "key"))
        start = torch.cat([self.place_side(vectors, side, method) for vectors, side in sides], 1)
        moved = self.look(start, looks)
        found = [self._same(vectors, side) for vectors, side in sides]
        same, at = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
        return torch.where(same[..., None], at, moved)

    def place_side(self, vectors: Tensor, side: str, method: str) -> Tensor:
        """Place new queries, or keys, among their like; returns (heads, N', dims)."""
        return place(self._alike(vectors, side), self.sides[SIDES.index(side)], method)

    def _alike(self, vectors: Tensor, side: str) -> Tensor:
        alike = self.kin.queries(vectors) if side == "query" else self.kin.keys(vectors)
        return as_points(alike, "euclidean")

    def _same(self, vectors: Tensor, side: str) -> tuple[Tensor, Tensor]:
        """Tell which new points the map has already (heads, N'), and where their copies lie."""
        known = self.sides[SIDES.index(side)]
        near = find_neighbours(self._alike(vectors, side), 1, "euclidean", among=known.points)
        size = known.points.square().sum(2).mean(1).sqrt()[:, None]
        at = known.places.gather(1, near.index.expand(-1, -1, known.places.shape[2]))
        return near.distance[..., 0] <= SAME * size, at

    def look(self, start: Tensor, looks: Looks) -> Tensor:
        """Move new points (heads, N' + M', dims) while their queries look at their keys."""
        gaze = make_gaze(looks, start.shape[1])
        spread = self.places.var(1, unbiased=False).sum(1).sqrt()  # (heads,)
        first = start.permute(2, 0, 1).reshape(start.shape[2], -1)
        axes = first.clone()
        for turn in range(TURNS):
            axes += gaze.step(axes, LENGTH * (1 - turn / TURNS), spread)
            axes += BACK * (first - axes)
        return axes.view(start.shape[2], *start.shape[:2]).permute(1, 2, 0)
