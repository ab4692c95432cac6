"""Where does t-SNE put the queries and keys of every head?

The recipe of openTSNE: affinities from 3 × perplexity exact neighbours, a start from PCA, a first
phase in which ties pull 12 times as hard, then less, then plainly, with momentum, gains and a
learning rate that grows with the points. Attraction runs over sliced ties and repulsion over a
mesh, or both over fused kernels on CUDA. Nothing is random, so the seed changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.affinity import affinities, neighbours_for
from attention_atlas.layout.attended import AttentionGraph
from attention_atlas.layout.attraction import Ties, attraction, tie
from attention_atlas.layout.device import has_triton
from attention_atlas.layout.fuzzy import WHOLE, running
from attention_atlas.layout.graph import Graph, symmetric
from attention_atlas.layout.looks import LookForce
from attention_atlas.layout.neighbours import Neighbours
from attention_atlas.layout.pca import pca
from attention_atlas.layout.place import Known, Settling, settle
from attention_atlas.layout.repulsion import repulsion

START = 1e-4  # spread of the first axis at the start
LONGEST_STEP = 5.0
NEW_PERPLEXITY = 5.0  # a new point has few neighbours
JOINED_STEPS = 0.6  # share of the last phase that a map made of attention takes
LOOK_EVERY = 2  # steps of the last phase
LOOK = 1.7  # strength of a look at its beginning
LOOK_LAST = 0.02  # share of it at the end
Attract = Callable[[Tensor, Ties], Tensor]
Repel = Callable[[Tensor, int], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Phase:
    """Steps in which ties pull `exaggeration` times; `speed` is the learning rate × exaggeration
    ÷ points, which openTSNE holds at 1.
    """

    steps: int
    exaggeration: float
    momentum: float
    speed: float


def schedule(points: int, last_steps: float = 1.0) -> tuple[Phase, ...]:
    """Choose the phases: 450 steps up to 3,000 points, 280 from 10,000 on; openTSNE has 750.

    The last phase mostly spreads the map out. The more points, the further there is to go, so a
    large map coasts longer on a step; a small one would overshoot, and takes more steps instead,
    which its clumps of near-equal points need to find their places.

    last_steps  share of the steps of the last phase that are taken
    """
    coasting = 1 - min(0.1, max(0.05, 0.1 * (1000 / points) ** 0.3))
    last = round(last_steps * min(340, max(170, 340 * (3000 / points) ** 0.6)))
    return (Phase(80, 12.0, 0.8, 1.0), Phase(30, 3.0, 0.8, 1.0), Phase(last, 1.0, coasting, 2.0))


@dataclass(frozen=True)
class Forces:
    """How attraction (rows, dims) and repulsion (heads, points, dims) are computed."""

    attract: Attract
    repel: Repel
    crowds: tuple[int, ...] = ()  # sizes; points push only points of their own; none: it is one
    gaze: LookForce | None = None  # what queries look at, where the map is made of attention


def lay_out(
    points: Tensor,
    dims: int,
    near: Neighbours | AttentionGraph,
    seed: int = 0,
    perplexity: float = 30.0,
    phases: tuple[Phase, ...] | None = None,
) -> Tensor:
    """Place points (heads, points, width) with their ties; returns (heads, points, dims)."""
    gaze = near.gaze if isinstance(near, AttentionGraph) else None
    graph = (
        shares(near.graph)
        if isinstance(near, AttentionGraph)
        else _nearest_graph(near.nearest(neighbours_for(perplexity)), perplexity)
    )
    crowds = near.crowds if isinstance(near, AttentionGraph) else (points.shape[1],)
    ties = tie(graph, len(points), crowds)
    start = near.start[..., :dims] if isinstance(near, AttentionGraph) else pca(points, dims)
    start = start * (START / start[..., :1].std(1, keepdim=True).clamp_min(1e-12))
    places = start.view(-1, dims)[ties.order].view_as(start)
    forces = choose_forces(places, crowds, gaze.renumbered(_inverse(ties.order)) if gaze else None)
    for phase in phases or schedule(points.shape[1], JOINED_STEPS if gaze else 1.0):
        places = descend(places, ties, forces, phase)
    result = torch.empty_like(start)
    result.view(-1, dims)[ties.order] = places.reshape(-1, dims)
    return result


def _nearest_graph(near: Neighbours, perplexity: float) -> Graph:
    return symmetric(near.index, affinities(near, perplexity), "mean")


def shares(graph: Graph) -> Graph:
    """Make the ties of a point weigh about 1 in all, as t-SNE wants; returns the graph.

    A tie gets the mean of its shares in the sums of its two ends.
    """
    sums = running(graph)
    each = WHOLE / (sums[graph.start[1:]] - sums[graph.start[:-1]]).clamp_min(1)
    weight = graph.weight * (each[graph.row] + each[graph.column]) / 2
    return Graph(graph.start, graph.column, weight.float())


def _inverse(order: Tensor) -> Tensor:
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    return place


def choose_forces(
    places: Tensor, crowds: tuple[int, ...] = (), gaze: LookForce | None = None
) -> Forces:
    """Choose fused kernels where the device has them, else the same sums in plain torch."""
    if places.is_cuda and has_triton():
        from attention_atlas.layout import fused

        return Forces(fused.attraction, fused.repulsion, crowds, gaze)
    return Forces(attraction, repulsion, crowds, gaze)


def descend(places: Tensor, ties: Ties, forces: Forces, phase: Phase) -> Tensor:
    points = places.shape[1]
    rate = phase.speed * points / phase.exaggeration
    pull_by = phase.exaggeration / points  # ties weigh 1 a point; all of them together weigh 1
    update, gain = torch.zeros_like(places), torch.ones_like(places)
    for step in range(phase.steps):
        slope = gradient(places, ties, forces, pull_by)
        onward = (update * slope) > 0  # the last step went up the slope
        gain = torch.where(onward, gain * 0.8 + 0.01, gain + 0.2)
        update = phase.momentum * update - rate * gain * slope
        length = update.norm(dim=2, keepdim=True)
        update = update * (LONGEST_STEP / length.clamp_min(LONGEST_STEP))
        places = places + update
        places = places - places.mean(1, keepdim=True)
        if forces.gaze is not None and phase.exaggeration == 1 and step % LOOK_EVERY == 0:
            axes = places.permute(2, 0, 1).contiguous()
            length = LOOK * max(LOOK_LAST, 1 - step / phase.steps)
            look = forces.gaze.step(axes.view(len(axes), -1), length).view_as(axes)
            places = places + look.permute(1, 2, 0)
    return places


def gradient(places: Tensor, ties: Ties, forces: Forces, pull_by: float) -> Tensor:
    """Get a quarter of the slope of the divergence, as openTSNE counts it."""
    points = places.shape[1]
    crowds = forces.crowds or (points,)
    pull = forces.attract(places.view(-1, places.shape[2]), ties).reshape(places.shape) * pull_by
    if len(set(crowds)) == 1:  # crowds of one size are pushed at once, as if they were heads
        parts = [places.reshape(-1, crowds[0], places.shape[2])]
    else:
        parts = list(torch.split(places, list(crowds), 1))
    pushes = []
    for crowd in parts:
        potential, push = forces.repel(crowd.contiguous(), points if len(crowds) > 1 else 0)
        share = crowd.shape[1] / points  # of what all ties weigh
        pushes.append((push * (share / normaliser(potential))[:, None, None]).view(len(places), -1))
    return pull - torch.cat(pushes, 1).view_as(pull)


def normaliser(potential: Tensor) -> Tensor:
    """Sum 1 / (1 + d²) over all pairs of different points of a head; returns (heads,)."""
    points = potential.shape[1]
    return (potential.double().sum(1) - points).clamp_min(1e-3).to(potential.dtype)


def place(new: Tensor, known: Known) -> Tensor:
    """Place new points among known ones; returns (heads, M, dims)."""
    return settle(new, known, Settling(new_affinities, pull, push))


def new_affinities(near: Neighbours) -> Tensor:
    return affinities(near, NEW_PERPLEXITY)


def pull(at: Tensor, known: Tensor, strengths: Tensor) -> Tensor:
    """Get the step towards the neighbours, down the slope of each new point's own divergence."""
    apart = known - at[:, :, None]  # (heads, M, k, dims)
    weight = strengths / (1 + apart.square().sum(3))
    return (weight[..., None] * apart).sum(2)


def push(at: Tensor, others: Tensor) -> Tensor:
    """Get the step away from all other points."""
    away = at[:, :, None] - others[:, None]  # (heads, M, others, dims)
    close = 1 / (1 + away.square().sum(3))
    return (close.square()[..., None] * away).sum(2) / close.sum(2, keepdim=True)
