"""How strong is each neighbour in UMAP, and which one is pulled next?

UMAP's memberships: the nearest neighbour is sure, further ones fade with a width that makes them
add up to log2 of their number; a pair is tied if either end is. Drawing ties at random is the
slow part of UMAP, so each point gets a fixed round of turns instead: its ties in proportion
to their weight, cut evenly from a random start (systematic sampling).
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from attention_atlas.layout.graph import Graph
from attention_atlas.layout.neighbours import Neighbours

HALVINGS = 32
COPY = 1e-6  # a point at most this far from another is its copy, but for rounding
TURNS = 64  # a tie below 1/64 of its point's weight may be left out, as UMAP leaves out weak ones
WHOLE = 2.0**32
STRIDE = 39  # visits the turns in an order that spreads them; has no factor in common with them


@dataclass(frozen=True)
class Rounds:
    """The partner of each point in each round, and its weight in the graph."""

    partner: Tensor  # (turns, rows) int32, rows count through all heads
    weight: Tensor  # (heads, points) summed over ties; the strongest tie of a head weighs 1

    def at(self, step: int) -> Tensor:
        return self.partner[step * STRIDE % TURNS]


def memberships(near: Neighbours) -> Tensor:
    """Get one-way weights (heads, points, k) of the neighbours; the point itself counts as one."""
    distance = near.distance.masked_fill(near.distance <= COPY, 0)
    nearest = distance.masked_fill(distance == 0, math.inf).amin(2, keepdim=True)
    beyond = (distance - nearest.nan_to_num(posinf=0.0)).clamp_min(0)
    scale = beyond.mean(2, keepdim=True).clamp_min(1e-12)
    low = torch.full_like(scale, -20.0)  # of the logarithm of the width, in units of the mean
    high = torch.full_like(scale, 20.0)
    target = math.log2(near.k + 1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        wide = torch.exp(-beyond / (scale * middle.exp())).sum(2, keepdim=True) > target
        low, high = torch.where(wide, low, middle), torch.where(wide, middle, high)
    least = 1e-3 * distance.sum(2, keepdim=True) / (near.k + 1)
    width = torch.maximum(scale * high.exp(), least)
    return torch.exp(-beyond / width.clamp_min(1e-12))


def fade(drop: Tensor, wanted: Tensor) -> Tensor:
    """Turn how far each partner is below the best (…, k) into weights that add up to `wanted`.

    Partners at infinity get 0. `wanted` is (…, 1); a row with fewer partners gets 1 for each.
    """
    real = drop.isfinite()
    count = real.sum(-1, keepdim=True)
    scale = drop.where(real, drop.new_zeros(())).sum(-1, keepdim=True) / count.clamp_min(1)
    drop = drop / scale.clamp_min(1e-12)
    low, high = torch.full_like(scale, -20.0), torch.full_like(scale, 20.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        wide = torch.exp(-drop / middle.exp()).sum(-1, keepdim=True) > wanted
        low, high = torch.where(wide, low, middle), torch.where(wide, middle, high)
    return torch.exp(-drop / high.exp())


def rounds(graph: Graph, heads: int, seed: torch.Generator) -> Rounds:
    """Give every point of a graph of some heads its round of partners."""
    points = (len(graph.start) - 1) // heads
    sums = running(graph)
    total = (sums[graph.start[1:]] - sums[graph.start[:-1]]).view(heads, points) / WHOLE
    ends = graph.start[points::points].tolist()  # rows are in order, so each head is one piece
    strongest = torch.stack([
        graph.weight[first:last].amax() if last > first else graph.weight.new_zeros(())
        for first, last in pairwise([0, *ends])
    ])  # fmt: skip
    return Rounds(_turns(graph, sums, seed), total / strongest[:, None])


def running(graph: Graph) -> Tensor:
    """Sum the weights up to each tie in whole numbers, since CUDA adds floats in varying order."""
    sums = torch.zeros(len(graph.weight) + 1, dtype=torch.int64, device=graph.weight.device)
    torch.cumsum((graph.weight * WHOLE).long(), 0, out=sums[1:])
    return sums


def _turns(graph: Graph, sums: Tensor, seed: torch.Generator) -> Tensor:
    first, last = graph.start[:-1], graph.start[1:]
    begin = torch.rand(len(first), generator=seed, dtype=torch.float64).to(sums.device)
    turn = torch.arange(TURNS, device=sums.device)[:, None]
    along = (turn + begin) / TURNS * (sums[last] - sums[first])  # (turns, rows)
    aim = sums[first] + along.long()
    tie = torch.searchsorted(sums, aim, right=True) - 1
    tie = torch.minimum(torch.maximum(tie, first), last - 1)
    return graph.column[tie].int()
