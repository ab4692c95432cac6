"""How is a new point pushed by a map that stands still, when there are millions of new points?

The push depends only on where a point is. It is computed once at the nodes of a mesh over the map
and read between them, linearly along each axis: a step of a new point costs the same however many
points the map has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

NODES = {2: 128, 3: 32}  # per axis, by the dimensions of the map
MARGIN = 0.1  # of the longest side; a point further out feels the push at the edge
TOGETHER = 1 << 8  # nodes computed at once on a CPU, so that their pairs stay in its cache
TOGETHER_CUDA = 1 << 14


@dataclass(frozen=True)
class Field:
    """The push at each node of a mesh, for every head."""

    low: Tensor  # (heads, 1, dims) the place of the first node
    step: Tensor  # (heads, 1, dims) from node to node
    pushes: Tensor  # (heads, nodes, dims); the last axis of the mesh runs fastest
    side: int  # nodes per axis

    def at(self, places: Tensor) -> Tensor:
        """Read the push at places (heads, M, dims); returns (heads, M, dims)."""
        heads, count, dims = places.shape
        along = ((places - self.low) / self.step).clamp(0, self.side - 1)
        cell = along.floor().clamp_max(self.side - 2)
        share = along - cell
        total = torch.zeros_like(places)
        for corner in product((0, 1), repeat=dims):
            node = cell.new_zeros(heads, count)
            weight = torch.ones_like(node)
            for axis, beyond in enumerate(corner):
                node = node * self.side + cell[..., axis] + beyond
                weight = weight * (share[..., axis] if beyond else 1 - share[..., axis])
            index = node.long()[..., None].expand(-1, -1, dims)
            total += weight[..., None] * self.pushes.gather(1, index)
        return total


def make_field(places: Tensor, push: Callable[[Tensor], Tensor]) -> Field:
    """Compute the push at every node over a map of places (heads, N, dims); returns the field."""
    dims = places.shape[2]
    side = NODES[dims]
    low, high = places.amin(1, keepdim=True), places.amax(1, keepdim=True)
    margin = MARGIN * (high - low).amax(2, keepdim=True).clamp_min(1.0)
    low, step = low - margin, (high - low + 2 * margin) / (side - 1)
    axes = [torch.arange(side, device=places.device, dtype=places.dtype)] * dims
    nodes = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).view(1, -1, dims) * step + low
    together = TOGETHER_CUDA if places.is_cuda else TOGETHER
    pushes = torch.cat([push(some) for some in torch.split(nodes, together, dim=1)], 1)
    return Field(low, step, pushes, side)
