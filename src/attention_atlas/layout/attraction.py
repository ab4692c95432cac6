"""How strongly is each point pulled by its ties, when there are millions of ties?

The ties of a t-SNE map do not change while it is made, so they are laid out once for the memory:
points are sorted by their number of ties and cut into slices, and within a slice the first ties of
all its points come first, then the second ties (sliced ELLPACK). Reading runs straight through
memory, nothing is added by scattering, and a slice stays in the cache.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from attention_atlas.layout.graph import Graph

TIES_A_SLICE = 1 << 17
ROWS_A_SLICE_CUDA = 32


@dataclass(frozen=True)
class Ties:
    """The ties of rows sorted by `order`; columns count in the sorted order too."""

    order: Tensor  # (rows,) the row that stands at each sorted place
    first: Tensor  # (slices + 1,) first row of each slice
    offset: Tensor  # (slices + 1,) where its ties begin
    column: Tensor  # (ties,) padding points at row 0
    weight: Tensor  # (ties,) padding weighs 0

    def slices(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yield the rows of each slice with its columns and weights (width, rows)."""
        first, offset = self.first.tolist(), self.offset.tolist()
        for number in range(len(first) - 1):
            begin, end = first[number], first[number + 1]
            ties = slice(offset[number], offset[number + 1])
            shape = (-1, end - begin)
            yield slice(begin, end), self.column[ties].view(shape), self.weight[ties].view(shape)


def tie(graph: Graph, heads: int, crowds: tuple[int, ...] = ()) -> Ties:
    """Sort the ties of a graph of `heads` heads into slices; returns them.

    crowds  sizes of the parts of a head whose points stay together; none: it is one
    """
    rows = len(graph.start) - 1
    crowds = crowds or (rows // heads,)
    parts = [
        part.sort(dim=1, descending=True, stable=True)
        for part in torch.split(graph.degree.view(heads, -1), list(crowds), 1)
    ]
    before = accumulate((0, *crowds))
    order = torch.cat([part.indices + first for part, first in zip(parts, before, strict=False)], 1)
    degree = torch.cat([part.values for part in parts], 1)
    order = (order + _head_starts(order)).view(-1)
    first = _cuts_cuda(degree, crowds) if degree.is_cuda else _cuts(degree, crowds)
    degree = degree.view(-1)
    count = first.diff()
    width = degree[first[:-1]]  # the first row of a slice has the most ties
    offset = torch.cat([first.new_zeros(1), (width * count).cumsum(0)])

    place = torch.empty_like(order)  # where each row went
    place[order] = torch.arange(rows, device=order.device)
    row = graph.row
    slot = torch.arange(len(row), device=row.device) - graph.start[row]
    row = place[row]
    piece = torch.searchsorted(first, row, right=True) - 1
    index = offset[piece] + slot * count[piece] + row - first[piece]
    size = int(offset[-1])
    column = torch.zeros(size, dtype=torch.int32, device=row.device)
    column[index] = place[graph.column].int()
    weight = torch.zeros(size, device=row.device)
    weight[index] = graph.weight
    return Ties(order, first, offset, column, weight)


def attraction(places: Tensor, ties: Ties) -> Tensor:
    """Sum w (y − y') / (1 + |y − y'|²) over the ties of each row of sorted places (rows, dims)."""
    axes = places.t().contiguous()  # (dims, rows)
    pull = torch.empty_like(axes)
    largest = int(ties.offset.diff().max())
    scratch = axes.new_empty(len(axes) + 1, largest)  # fresh memory would cost more than the sums
    for rows, column, weight in ties.slices():
        near, *apart = (buffer[: weight.numel()].view_as(weight) for buffer in scratch)
        near.fill_(1)
        for axis, gap in zip(axes, apart, strict=True):
            torch.index_select(axis, 0, column.view(-1), out=gap.view(-1))
            torch.sub(axis[rows], gap, out=gap)
            near.addcmul_(gap, gap)
        torch.div(weight, near, out=near)
        for axis, gap in enumerate(apart):
            torch.sum(gap.mul_(near), 0, out=pull[axis, rows])
    return pull.t()


def _head_starts(order: Tensor) -> Tensor:
    heads, points = order.shape
    return torch.arange(heads, device=order.device)[:, None] * points


def _cuts(degree: Tensor, crowds: tuple[int, ...]) -> Tensor:
    """Cut rows into slices of about equal numbers of ties; no slice crosses two crowds."""
    heads, points = degree.shape
    first = []
    for head, degrees in enumerate(degree.tolist()):
        for begin, end in pairwise(accumulate((0, *crowds))):
            row = begin
            while row < end:
                first.append(head * points + row)
                row += max(1, TIES_A_SLICE // max(1, degrees[row]))
    return torch.tensor([*first, heads * points])


def _cuts_cuda(degree: Tensor, crowds: tuple[int, ...]) -> Tensor:
    heads, points = degree.shape
    ends = pairwise(accumulate((0, *crowds)))
    of_head = [torch.arange(*end, ROWS_A_SLICE_CUDA, device=degree.device) for end in ends]
    first = torch.cat(of_head) + _head_starts(degree)
    return torch.cat([first.view(-1), first.new_tensor([heads * points])])
