"""Which points are tied, and how strongly, when being near counts both ways?

A point's nearest points need not have it among theirs. Both t-SNE and UMAP make the relation
symmetric; they differ only in how the two weights of a pair are joined. All heads form one graph
whose parts do not touch: a row is a point of a head, and columns count through all heads.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Graph:
    """Symmetric weights by row: the edges of row r are start[r] to start[r + 1]."""

    start: Tensor  # (rows + 1,) int64
    column: Tensor  # (edges,) int64
    weight: Tensor  # (edges,)

    @property
    def degree(self) -> Tensor:
        return self.start.diff()

    @property
    def row(self) -> Tensor:
        rows = torch.arange(len(self.start) - 1, device=self.start.device)
        return rows.repeat_interleave(self.degree, output_size=len(self.column))


def mean_of_both(sums: Tensor, products: Tensor) -> Tensor:
    """Combine two one-way weights as t-SNE does: half the sum."""
    return sums.div_(2)


def either_of_both(sums: Tensor, products: Tensor) -> Tensor:
    """Combine them as UMAP does: the probability that at least one of the two holds."""
    return sums.sub_(products)


JOIN = {"mean": mean_of_both, "either": either_of_both}


def symmetric(index: Tensor, weight: Tensor, join: str) -> Graph:
    """Make the symmetric graph of neighbours (heads, points, k) with one-way weights."""
    heads, points, k = index.shape
    rows = heads * points
    first = torch.arange(heads, device=index.device).view(-1, 1, 1) * points
    target = (index + first).view(-1)
    source = torch.arange(rows, device=index.device).repeat_interleave(k)
    key, order = torch.cat([source * rows + target, target * rows + source]).sort()
    value = weight.reshape(-1).repeat(2)[order]
    again = torch.zeros_like(key, dtype=torch.bool)
    torch.eq(key[1:], key[:-1], out=again[1:])  # the same pair, seen from its other end
    other = torch.where(again, value, 0).roll(-1)
    key, value, other = key[~again], value[~again], other[~again]
    return _by_row(key, JOIN[join](value + other, value * other), rows)


def from_ties(source: Tensor, target: Tensor, weight: Tensor, rows: int) -> Graph:
    """Make the symmetric graph of any ties (ties,); of several of one pair the strongest counts."""
    key = torch.cat([source * rows + target, target * rows + source])
    key, order = key.sort()
    first = torch.ones_like(key, dtype=torch.bool)
    torch.ne(key[1:], key[:-1], out=first[1:])
    which = first.cumsum(0) - 1
    strongest = weight.new_zeros(int(which[-1]) + 1 if len(which) else 0)
    strongest.scatter_reduce_(0, which, weight.repeat(2)[order], "amax")
    return _by_row(key[first], strongest, rows)


def _by_row(key: Tensor, weight: Tensor, rows: int) -> Graph:
    """Make the graph of pairs numbered row · rows + column, in order."""
    row = key // rows
    start = torch.zeros(rows + 1, dtype=torch.int64, device=key.device)
    torch.cumsum(torch.bincount(row, minlength=rows), 0, out=start[1:])
    return Graph(start, key - row * rows, weight)
