"""How does a query find its place among the keys that it attends to?

Of each query's row in its own input a few keys are looked at: the strongest ordinary ones, the
strongest special ones, and some drawn evenly from all it sees. While a map is made, the map itself
attends: a key at distance d has the weight (1 + d²)^−fall of its row. Where the head puts more
weight on a key than the map does, query and key are drawn together, else pushed apart; this is the
slope of the Kullback–Leibler divergence of the two rows.

What the head puts is taken from logits with mean 0 and spread 1 in each row, so that a head
that looks at one key only and a head that looks everywhere both tell where all their keys belong.
A method may ask for sharper rows, and that a query whose strongest key is already among its nearest
feels little more, so that like can settle with like (`LookForce.eager`). Special tokens are apart:
ordinary keys are mostly compared among themselves, since a sink would hide them.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from attention_atlas.layout.device import has_triton
from attention_atlas.layout.sight import Sight, SightBlock

STRONGEST, SPECIAL, DRAWN = 4, 2, 24  # keys of a row: strongest ordinary, strongest special, others
SHARP = 4.0  # how much sharper the head's rows are than their logits of spread 1
FALL = 2  # of what the map puts on a key, with distance
NEAR = 2  # a row is settled if its strongest key is among so many nearest
WITH_SPECIAL = 0.1  # share of a row's force in which special tokens count like others
RADIUS = 6.0  # forces are computed on a map of this root mean square radius
WHOLE = 2.0**32


@dataclass(frozen=True)
class Looks:
    """Keys that each query looks at, (heads, N, K); the strongest ordinary one comes first."""

    key: Tensor  # int64 numbers of the map's keys
    logit: Tensor  # with mean 0 and spread 1 over all keys that the query sees
    seen: Tensor  # bool; the others only fill the row
    ordinary: Tensor  # bool; seen and not special


def find_looks(queries: Tensor, keys: Tensor, sight: Sight, heads: slice) -> Looks:
    """Choose the keys that each query of some heads of a layer looks at."""
    shape = (*queries.shape[:2], STRONGEST + SPECIAL + DRAWN)
    looks = Looks(
        torch.zeros(shape, dtype=torch.int64, device=queries.device),
        torch.zeros(shape, device=queries.device),
        torch.zeros(shape, dtype=torch.bool, device=queries.device),
        torch.zeros(shape, dtype=torch.bool, device=queries.device),
    )
    for block in sight.blocks:
        logits = sight.logits(block, queries, keys, heads)
        number = block.key.clamp_min(0)[None, :, None].expand_as(logits)
        special = sight.special_keys[number[0]]  # (inputs, n, m)
        column, seen = _columns(logits, special, _drawn(block))
        key, logit = number.gather(3, column), _standard(logits, block.seen).gather(3, column)
        ordinary = seen & ~sight.special_keys[key]
        inputs, places, numbers = block.rows
        for to, found in ((looks.key, key), (looks.logit, logit), (looks.seen, seen),
                          (looks.ordinary, ordinary)):  # fmt: skip
            to[:, numbers] = found[:, inputs, places]
    return looks


def _columns(logits: Tensor, special: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Choose columns of rows (heads, inputs, n, m); returns them and which are real, once each."""
    heads, m = len(logits), logits.shape[3]
    parts = []
    for apart, count in ((special, STRONGEST), (~special, SPECIAL)):
        top = logits.masked_fill(apart, -torch.inf).topk(min(count, m), 3)
        parts.append((top.indices, top.values > -torch.inf, count))
    others = drawn.expand(heads, -1, -1, -1)
    taken = torch.zeros_like(others, dtype=torch.bool)
    for index, real, _ in parts:
        for column in range(index.shape[3]):
            taken |= (others == index[..., column, None]) & real[..., column, None]
    parts.append((others.clamp_min(0), (others >= 0) & ~taken, DRAWN))
    return (
        torch.cat([_filled(index, count) for index, _, count in parts], 3),
        torch.cat([_filled(real, count) for _, real, count in parts], 3),
    )


def _filled(values: Tensor, count: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, count - values.shape[3]))


def _drawn(block: SightBlock) -> Tensor:
    """Draw columns of each row, evenly from those seen, (inputs, n, DRAWN); −1 where none is left.

    They are equally far from each other; where a row begins is found by hashing, so that no random
    number is needed.
    """
    rank = block.seen.cumsum(2)  # (inputs, n, m)
    count = rank[..., -1:]
    part = torch.arange(DRAWN, device=rank.device)
    row = block.query[..., None].clamp_min(0)
    luck = (row * 2654435761 % 65536) / 65536  # (inputs, n, 1)
    wanted = torch.where(count <= DRAWN, part, ((part + luck) * count / DRAWN).long()) + 1
    column = torch.searchsorted(rank, wanted)
    return torch.where(wanted <= count, column.clamp_max(block.seen.shape[2] - 1), -1)


def _standard(logits: Tensor, seen: Tensor) -> Tensor:
    """Shift and scale each row to mean 0 and spread 1 over the keys it sees."""
    count = seen.sum(2, keepdim=True).clamp_min(1)
    real = logits.where(seen, logits.new_zeros(()))
    mean = real.sum(3, keepdim=True) / count
    apart = (logits - mean).where(seen, logits.new_zeros(()))
    spread = (apart.square().sum(3, keepdim=True) / count).sqrt()
    return apart / spread.clamp_min(1e-6)


# The force ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LookForce:
    """The looks of all queries as rows of one long list of points; heads lie one after another."""

    query: Tensor  # (R,) row of each query
    key: Tensor  # (K, R) row of each key; the strongest ordinary one comes first
    pull: Tensor  # (K, R) exp(logit); 0 where not seen
    ordinary: Tensor  # (K, R) 1 or 0
    heads: int
    settled: float = 1.0  # the share of its force that a settled row feels

    def renumbered(self, place: Tensor) -> "LookForce":
        """Return the same where row r has moved to place[r]."""
        return replace(self, query=place[self.query], key=place[self.key])

    def eager(self, sharper: float, settled: float) -> "LookForce":
        """Return the same with sharper rows, and less force on settled rows."""
        return replace(self, pull=self.pull.pow(sharper), settled=settled)

    def step(self, axes: Tensor, length: float, spread: Tensor | None = None) -> Tensor:
        """Get how far looking moves places (dims, rows); returns the same shape.

        `spread` (heads,) is the root mean square radius of the map, unless these points are all of
        it. A point moves along its force times `length`, but never past the keys that draw it: the
        step is divided by 1 + length × the sum of what draws and pushes the point.
        """
        unit = self._unit(axes, spread)[self.query]
        if axes.is_cuda and has_triton():
            from attention_atlas.layout.fused_looks import look_sums

            mass, moved = look_sums(self, axes, unit)
        else:
            mass, moved = self.sums(axes, unit)
        return moved.mul_(-length).div_(mass.mul_(length).add_(1))

    def sums(self, axes: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
        """Sum what draws and pushes each point, (rows,), and the force on it, (dims, rows).

        unit  (R,) the size of each query's map
        """
        rows = self.key.view(-1)
        gap = torch.stack(
            [axis[self.query] - axis.index_select(0, rows).view_as(self.key) for axis in axes]
        )  # (dims, K, R)
        away = gap.square().sum(0)
        pull = self._pull(away / unit.square())
        if self.settled < 1:
            pull *= torch.where(self._is_settled(away), self.settled, 1.0)
        mass = torch.zeros_like(axes[0])
        moved = torch.zeros_like(axes)
        for to, value in zip((mass, *moved), (pull.abs(), *gap.mul_(pull)), strict=True):
            to[self.query] = value.sum(0)
            _scatter(to, rows, value.view(-1), -1 if to is not mass else 1)
        return mass, moved

    def _pull(self, square: Tensor) -> Tensor:
        """Get how strongly each pair is drawn together, or pushed apart where negative: (K, R).

        square  (K, R) of the distance on the map
        """
        close = square.add_(1).reciprocal_()
        shown = self._seen * close.pow(FALL)
        excess = self.wanted - _share(shown * self.ordinary, 1 - WITH_SPECIAL)
        excess -= _share(shown, WITH_SPECIAL)
        return excess.mul_(close).mul_(2 * FALL)

    @cached_property
    def _seen(self) -> Tensor:
        return (self.pull > 0).to(self.pull.dtype)

    @cached_property
    def wanted(self) -> Tensor:
        """Return what the head puts on each key: (K, R)."""
        apart = _share(self.pull * self.ordinary, 1 - WITH_SPECIAL)
        return apart + _share(self.pull, WITH_SPECIAL)

    @cached_property
    def key32(self) -> Tensor:
        """Return `key` in half the bytes, for the kernel."""
        return self.key.int()

    @cached_property
    def flags(self) -> Tensor:
        """Return 0 for a key that is not seen, 1 for a special, 2 for an ordinary one: (K, R)."""
        return (self._seen + self._seen * self.ordinary).to(torch.int8)

    def _is_settled(self, away: Tensor) -> Tensor:
        """Tell which queries have their strongest key among the nearest ordinary ones: (R,)."""
        return ((away < away[0]) & (self.ordinary > 0)).sum(0) < NEAR

    def _unit(self, axes: Tensor, spread: Tensor | None) -> Tensor:
        """Measure the radius of each head's map in units of RADIUS; returns it for each row."""
        of_head = axes.view(len(axes), self.heads, -1)
        if spread is None:
            spread = of_head.var(2, unbiased=False).sum(0).sqrt()
        return (spread / RADIUS).clamp_min(1e-12).repeat_interleave(of_head.shape[2])


def make_gaze(looks: Looks, points: int) -> LookForce:
    """Number the points of all heads through: queries, then keys, of the first head, and so on."""
    heads, count, _ = looks.key.shape
    first = torch.arange(heads, device=looks.key.device)[:, None] * points
    query = (first + torch.arange(count, device=first.device)).view(-1)
    key = (looks.key + first[..., None] + count).flatten(0, 1).t().contiguous()
    ordinary = looks.ordinary.flatten(0, 1).t()
    top = looks.logit.masked_fill(~looks.seen, -torch.inf).amax(2, keepdim=True)
    below = (looks.logit - top).masked_fill(~looks.seen, -torch.inf)  # NaN where nothing is seen
    pull = (SHARP * below.flatten(0, 1).t().contiguous()).exp().nan_to_num(0.0)
    return LookForce(query, key, pull, ordinary.to(pull.dtype).contiguous(), heads)


def _share(row: Tensor, of: float) -> Tensor:
    """Scale the columns of (K, R) to the sum `of`; empty ones stay 0."""
    return row * (of / row.sum(0).clamp_min(1e-12))


def _scatter(to: Tensor, row: Tensor, value: Tensor, sign: int) -> None:
    if not to.is_cuda:
        to.scatter_add_(0, row, value * sign)
        return
    # whole numbers add up to the same sum in any order, so that a run on CUDA repeats
    whole = torch.zeros(len(to), dtype=torch.int64, device=to.device)
    whole.scatter_add_(0, row, (value * WHOLE).long())
    to += whole.to(to.dtype).mul_(sign / WHOLE)
