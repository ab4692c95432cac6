"""Where does UMAP put the queries and keys of every head?

umap-learn moves one pair after another; here all points of all heads move at once, in small steps.
In a step every point is drawn to one partner (its next turn) and pushed away from a few others.
What differs from umap-learn, so that a step needs no scattering and no random number per pair:

- a tie is felt by each end on its own turns, with twice the weight, not by both at once;
- the others are the points a random shift further on, and as far back, in a shuffled order all
  heads share: each pair is computed once and pushes both ends;
- forces carry their expected weight instead of being drawn with that chance;
- a point of great weight takes shorter steps, so that moving at once does not overshoot;
- the start is PCA, or what the ties of attention bring along.

All random numbers come from one seeded CPU generator, so a seed means the same on every device.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from attention_atlas.layout.attended import AttentionGraph
from attention_atlas.layout.device import has_triton
from attention_atlas.layout.fuzzy import Rounds, memberships, rounds
from attention_atlas.layout.graph import Graph, symmetric
from attention_atlas.layout.likeness import towards_like
from attention_atlas.layout.looks import LookForce
from attention_atlas.layout.methods import METHODS
from attention_atlas.layout.neighbours import Neighbours
from attention_atlas.layout.pca import pca
from attention_atlas.layout.place import Known, Settling, settle

A, B = 1.5769434603, 0.8950608779  # umap-learn's curve for min_dist 0.1 and spread 1
JOINED_A = 1.2  # of the curve of a map made of attention; its b is 1, so no power is computed
PAIRS = 2  # shifts in one step; twice as many points push a point
OTHERS = 5  # as many points push in one step as far as strength goes, as in umap-learn
EPOCHS = 200
JOINED_STEPS = 2000  # of a map made of attention
FORCE = 4.0  # forces are cut at this size
PULL, JOINED_PULL = 0.5, 0.25  # of its weight, what a point feels in one step at most
LOOK_EVERY = 2  # epochs
LOOK = 24.0  # strength of a look at the beginning
LOOK_LAST = 0.01  # share of it at the end
LIKE_FROM = 0.3  # points are drawn to where their like stand once the rate has fallen to this
LIKE_EVERY = 2  # looks
LIKE_BY = 0.3  # share of the way
EAGER = (1.4, 0.2)  # how much sharper rows are, what settled rows feel


def lay_out(
    points: Tensor,
    dims: int,
    near: Neighbours | AttentionGraph,
    seed: int = 0,
    epochs: int = EPOCHS,
) -> Tensor:
    """Place points (heads, points, width) with their ties; returns (heads, points, dims).

    A map made of attention takes a fixed number of steps instead of epochs.
    """
    numbers = torch.Generator().manual_seed(seed)
    heads, count = points.shape[:2]
    joined = near if isinstance(near, AttentionGraph) else None
    crowds = joined.crowds if joined else (count,)
    order = _shuffle(crowds, numbers).to(points.device)
    begin = joined.start[..., :dims] if joined else pca(points, dims)
    start = _start(begin, numbers)[:, order]
    graph = near.graph if isinstance(near, AttentionGraph) else _nearest_graph(near)
    gaze = joined.gaze.eager(*EAGER) if joined else None
    kin = joined.kin if joined else ()
    course = Course(rounds(graph, heads, numbers), crowds, epochs, gaze, kin)
    moved = _settle(start, _shuffled(course, order), numbers)
    places = torch.empty_like(start)
    places[:, order] = moved
    return places


def _shuffle(crowds: tuple[int, ...], numbers: torch.Generator) -> Tensor:
    """Draw an order of all points in which each crowd stays together."""
    firsts = accumulate((0, *crowds))
    return torch.cat(
        [
            first + torch.randperm(size, generator=numbers)
            for first, size in zip(firsts, crowds, strict=False)
        ]
    )


def _start(places: Tensor, numbers: torch.Generator) -> Tensor:
    """Stretch places to ten on each axis, with a little noise that separates equal points."""
    low = places.amin(1, keepdim=True)
    wide = (places.amax(1, keepdim=True) - low).clamp_min(1e-12)
    noise = torch.randn(places.shape[1:], generator=numbers).to(places.device)
    return 10 * (places - low) / wide + 1e-4 * noise


def _nearest_graph(near: Neighbours) -> Graph:
    chosen = near.nearest(METHODS["umap"].neighbours)
    return symmetric(chosen.index, memberships(chosen), "either")


@dataclass(frozen=True)
class Course:
    """What moves the points: their ties, what queries look at, and for how long."""

    around: Rounds
    crowds: tuple[int, ...]  # sizes; a point pushes only points of its own crowd
    for_epochs: int
    gaze: LookForce | None
    kin: tuple[Tensor, ...] = ()  # what the points of each crowd are like: (heads, points, width)

    @cached_property
    def parts(self) -> int:
        """Count the steps of an epoch."""
        return max(1, round(self.around.weight.mean().item()))

    @cached_property
    def epochs(self) -> int:
        return round(JOINED_STEPS / self.parts) if self.gaze else self.for_epochs

    @property
    def curve(self) -> tuple[float, float]:
        """Return a and b: two points at distance d are as near as 1 / (1 + a d^2b)."""
        return (JOINED_A, 1.0) if self.gaze else (A, B)

    @property
    def felt(self) -> float:
        """Return how strongly each of the points that push in a step is felt."""
        return OTHERS / (2 * PAIRS)

    @cached_property
    def pause(self) -> int:
        """Count the steps from one look to the next."""
        return LOOK_EVERY * self.parts

    def looks_after(self, step: int) -> bool:
        return self.gaze is not None and step % self.pause == 0

    def looked(self, axes: Tensor, step: int, rate: float) -> Tensor:
        """Get where places (dims, heads, points) are after looking; the same shape.

        Near the end points go towards their like first; looking then mends what that took away.
        """
        assert self.gaze is not None
        turn, rest = divmod(step, LIKE_EVERY * self.pause)
        if rate < LIKE_FROM and rest == 0:
            crowds = zip(torch.split(axes, list(self.crowds), 2), self.kin, strict=True)
            ways = [towards_like(places, vectors, turn) for places, vectors in crowds]
            axes = torch.add(axes, torch.cat(ways, 2), alpha=LIKE_BY)
        moved = self.gaze.step(axes.view(len(axes), -1), LOOK * max(LOOK_LAST, rate))
        return axes + moved.view_as(axes)


def _shuffled(course: Course, order: Tensor) -> Course:
    """Number all points anew: the one that stood at order[i] now stands at i."""
    around, gaze = course.around, course.gaze
    heads = len(around.weight)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    first = torch.arange(heads, device=order.device)[:, None] * len(order)
    rows, to = (order + first).view(-1), (place + first).view(-1)
    moved = Rounds(to[around.partner[:, rows]].int(), around.weight[:, order])
    kin = course.kin
    if kin:
        parts = torch.split(torch.cat(kin, 1)[:, order], list(course.crowds), 1)
        kin = tuple(part.contiguous() for part in parts)  # read anew at every turn
    seen = gaze.renumbered(to) if gaze else None
    return Course(moved, course.crowds, course.for_epochs, seen, kin)


def _settle(places: Tensor, course: Course, numbers: torch.Generator) -> Tensor:
    """Move (heads, points, dims) places through all steps of all epochs."""
    points, around, epochs = places.shape[1], course.around, course.epochs
    parts = course.parts
    share = around.weight / parts
    most = JOINED_PULL if course.gaze else PULL
    pace = share * (most / (2 * share)).clamp_max(1.0)  # (heads, points)
    shifts = torch.randint(1, max(2, points), (epochs * parts, PAIRS), generator=numbers)
    rates = [1 - (step // parts) / epochs for step in range(len(shifts))]
    if places.is_cuda and has_triton():
        return _settle_fused(places, course, pace, shifts.to(places.device, torch.int32), rates)
    axes = places.permute(2, 0, 1).contiguous()  # (dims, heads, points)
    for step, (shift, rate) in enumerate(zip(shifts.tolist(), rates, strict=True)):
        force = _drawn(axes, around.at(step), course.curve).mul_(2)
        force += _all_pushed(axes, shift, course)
        axes = torch.addcmul(axes, force, pace, value=rate)
        if course.looks_after(step):
            axes = course.looked(axes, step, rate)
    return axes.permute(1, 2, 0)


def _settle_fused(
    places: Tensor, course: Course, pace: Tensor, shifts: Tensor, rates: list[float]
) -> Tensor:
    from attention_atlas.layout.fused import umap_step

    places, spare = places.contiguous(), torch.empty_like(places)
    for step, rate in enumerate(rates):
        umap_step(places, course.around.at(step), shifts[step], pace, rate, course, spare)
        places, spare = spare, places
        if course.looks_after(step):
            axes = course.looked(places.permute(2, 0, 1).contiguous(), step, rate)
            places = axes.permute(1, 2, 0).contiguous()
    return places


def _drawn(axes: Tensor, partner: Tensor, curve: tuple[float, float]) -> Tensor:
    """Get the pull of one partner on each point; returns (dims, heads, points)."""
    a, b = curve
    apart = axes.clone()
    for axis, gap in zip(axes, apart, strict=True):
        gap.view(-1).sub_(axis.view(-1).index_select(0, partner))
    square = _squares(apart)
    if b == 1:
        return apart.mul_(square.mul_(a).add_(1).reciprocal_().mul_(-2 * a)).clamp_(-FORCE, FORCE)
    power = square.clamp_min_(1e-12).log().mul_(b).exp_()  # half the time of pow on a CPU
    strength = power.div(square).div_(power.mul_(a).add_(1)).mul_(-2 * a * b)
    return apart.mul_(strength).clamp_(-FORCE, FORCE)


def _squares(apart: Tensor) -> Tensor:
    """Get the squared length of (dims, …) vectors; without a copy of all their numbers."""
    total = apart[0].square()
    for axis in apart[1:]:
        total.addcmul_(axis, axis)
    return total


def _all_pushed(axes: Tensor, shift: list[int], course: Course) -> Tensor:
    """Get the push within each crowd; returns (dims, heads, points)."""
    crowds, curve = course.crowds, course.curve
    if len(set(crowds)) == 1:  # crowds of one size are pushed at once, as if they were heads
        size = crowds[0]
        shift = [by % size for by in shift]
        push = _pushed(axes.view(len(axes), -1, size), shift, curve)
        return push.view_as(axes).mul_(course.felt)
    parts = torch.split(axes, list(crowds), 2)
    shifts = [[by % part.shape[2] for by in shift] for part in parts]
    pushes = [_pushed(part, by, curve) for part, by in zip(parts, shifts, strict=True)]
    return torch.cat(pushes, 2).mul_(course.felt)


def _pushed(axes: Tensor, shift: list[int], curve: tuple[float, float]) -> Tensor:
    """Get the push of the points `shift` places on and back; returns (dims, heads, points)."""
    points, (a, b) = axes.shape[2], curve
    twice = torch.cat([axes, axes], 2)  # so that a slice past the end wraps round
    total = torch.zeros_like(axes)
    for by in shift:
        apart = axes - twice[:, :, by : by + points]
        square = _squares(apart)
        power = square.mul(a) if b == 1 else square.log().mul_(b).exp_().mul_(a)
        strength = square.add_(1e-3).mul_(power.add_(1)).reciprocal_().mul_(2 * b)
        total += apart.mul_(strength).clamp_(-FORCE, FORCE)
        total[:, :, by:] -= apart[:, :, : points - by]  # the other end, as far the other way
        total[:, :, :by] -= apart[:, :, points - by :]
    return total


def place(new: Tensor, known: Known) -> Tensor:
    """Place new points among known ones; returns (heads, M, dims)."""
    return settle(new, known, Settling(memberships, pull, push))


def pull(at: Tensor, known: Tensor, strengths: Tensor) -> Tensor:
    """Get the mean step of umap-learn's draws of each new point's neighbours."""
    apart = known - at[:, :, None]  # (heads, M, k, dims)
    square = apart.square().sum(3).clamp_min_(1e-12)
    power = square.log().mul_(B).exp_()
    strength = power.div(square).div_(power.mul_(A).add_(1)).mul_(2 * A * B)
    steps = apart.mul_(strength[..., None]).clamp_(-FORCE, FORCE)
    total = strengths.sum(2, keepdim=True).clamp_min(1e-12)
    return (steps * strengths[..., None]).sum(2) / total


def push(at: Tensor, others: Tensor) -> Tensor:
    """Get the mean step of umap-learn's draws of other points."""
    away = at[:, :, None] - others[:, None]  # (heads, M, others, dims)
    square = away.square().sum(3, keepdim=True)
    strength = 2 * B / ((0.001 + square) * (1 + A * square.pow(B)))
    return (strength * away).clamp(-FORCE, FORCE).mean(2) * OTHERS
