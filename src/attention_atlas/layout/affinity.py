"""How likely does each point choose each of its neighbours as its partner?

t-SNE's perplexity: every point gets its own width β so that exp(−β d²), made to sum to 1, has the
entropy of so many equal neighbours. Found for all points at once by halving an interval of log β.
"""

import math

import torch
from torch import Tensor

from attention_atlas.layout.neighbours import Neighbours

HALVINGS = 32


def neighbours_for(perplexity: float) -> int:
    """Get the number of neighbours for a perplexity: three times as many, as in openTSNE."""
    return int(3 * perplexity)


def affinities(near: Neighbours, perplexity: float) -> Tensor:
    """Get the probabilities of each point's neighbours; returns (heads, points, k), rows sum to 1.

    With too few neighbours for the perplexity it is lowered to a third of them.
    """
    target = math.log(max(1.0, min(perplexity, near.k / 3)))
    square = near.distance.square()
    square = square - square[..., :1]  # the nearest comes first; a shift changes no probability
    square = square / square.mean(2, keepdim=True).clamp_min(1e-12)
    low = torch.full_like(square[..., :1], -12.0)  # of log β, in units of the row's mean
    high = torch.full_like(low, 16.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        wide = _entropy(square, middle.exp()) > target
        low, high = torch.where(wide, middle, low), torch.where(wide, high, middle)
    return torch.softmax(-square * high.exp(), 2)


def _entropy(square: Tensor, beta: Tensor) -> Tensor:
    weight = torch.exp(-square * beta)
    total = weight.sum(2, keepdim=True)
    return total.log() + beta * (square * weight).sum(2, keepdim=True) / total
