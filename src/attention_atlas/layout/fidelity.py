"""How far can a map be trusted?

Three figures for each head, for the map, for PCA and for the same places shuffled: the rank
correlation of distance and dot product, as the AttentionViz paper measures it (Spearman along each
query's row within its input; then the mean over rows, inputs, head; −1 is perfect); trustworthiness
(are points that are near on the map near in truth?); and the share of true neighbours kept. The
correlation in the full space says what the projection started from.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.pca import pca

NEIGHBOURS = 15
ROWS = 300  # sampled for trustworthiness; all points are ranked for each
ROWS_AN_INPUT = 64  # sampled for the correlation


@dataclass(frozen=True)
class TokenInputs:
    """The input of each query and of each key, in the order of the points."""

    query: Tensor  # (N,)
    key: Tensor  # (M,)


@dataclass(frozen=True)
class Figures:
    correlation: Tensor  # (heads,)
    trust: Tensor  # (heads,)
    kept: Tensor  # (heads,)


@dataclass(frozen=True)
class Fidelity:
    full: Tensor  # (heads,) correlation before projection
    map: Figures
    pca: Figures
    shuffled: Figures


def fidelity(points: Tensor, dots: "Dots", places: Tensor, seed: int = 0) -> Fidelity:
    """Measure places (heads, 2N, dims) against points (heads, 2N, width) from `as_points`."""
    numbers = torch.Generator().manual_seed(seed)
    rows = torch.randperm(points.shape[1], generator=numbers)[:ROWS].to(points.device)
    shuffled = torch.randperm(points.shape[1], generator=numbers).to(points.device)

    def figures(shown: Tensor) -> Figures:
        return Figures(correlation(dots, shown), *neighbourhood(points, shown, rows))

    return Fidelity(
        full=correlation(dots, points),
        map=figures(places),
        pca=figures(pca(points, places.shape[2])),
        shuffled=figures(places[:, shuffled]),
    )


@dataclass(frozen=True)
class Dots:
    """What attention compares: queries (heads, N, width), keys (heads, M, width), their inputs."""

    queries: Tensor
    keys: Tensor
    tokens: TokenInputs


def correlation(dots: Dots, at: Tensor) -> Tensor:
    """Correlate distance at places (heads, N + M, width) with the dot product: (heads,)."""
    split = dots.queries.shape[1]
    means = []
    for number in sorted(set(dots.tokens.query.tolist())):
        rows = _evenly((dots.tokens.query == number).nonzero()[:, 0], ROWS_AN_INPUT)
        columns = (dots.tokens.key == number).nonzero()[:, 0]
        if len(columns) < 3:  # two ranks always agree or disagree
            continue
        dot = dots.queries[:, rows] @ dots.keys[:, columns].transpose(1, 2)  # (heads, rows, keys)
        apart = torch.cdist(at[:, rows], at[:, split + columns])
        means.append(spearman(apart, dot).mean(1))
    if not means:
        return torch.full_like(dots.queries[:, 0, 0], torch.nan)
    return torch.stack(means).mean(0)


def spearman(a: Tensor, b: Tensor) -> Tensor:
    """Correlate the ranks along the last axis; equal values share their mean rank."""
    x, y = _ranks(a), _ranks(b)
    spread = x.square().sum(-1) * y.square().sum(-1)
    return (x * y).sum(-1) / spread.sqrt().clamp_min(1e-12)


def neighbourhood(
    points: Tensor, places: Tensor, rows: Tensor, k: int = NEIGHBOURS
) -> tuple[Tensor, Tensor]:
    """Get trustworthiness and the share of the k nearest kept, over some rows: (heads,) each."""
    count = points.shape[1]
    k = min(k, (count - 1) // 2)
    if k < 1:
        unknown = torch.full_like(points[:, 0, 0], torch.nan)
        return unknown, unknown
    trust, kept = [], []
    for true, shown in zip(points, places, strict=True):
        near = _apart(shown, rows).topk(k, dim=1, largest=False).indices
        distance = _apart(true, rows)  # (rows, points)
        to_near = distance.gather(1, near)
        rank = torch.stack([(distance < near_by[:, None]).sum(1) for near_by in to_near.t()]) + 1
        beyond = (rank - k).clamp_min(0).sum()
        trust.append(1 - 2 * beyond / (len(rows) * k * (2 * count - 3 * k - 1)))
        kept.append((rank <= k).float().mean())
    return torch.stack(trust), torch.stack(kept)


def _apart(points: Tensor, rows: Tensor) -> Tensor:
    distance = torch.cdist(points[rows], points, compute_mode="donot_use_mm_for_euclid_dist")
    return distance.scatter_(1, rows[:, None], torch.inf)  # no point is its own neighbour


def _ranks(values: Tensor) -> Tensor:
    """Rank along the last axis, with mean 0."""
    values = values.contiguous()
    order = values.sort(-1).values
    below = torch.searchsorted(order, values)
    upto = torch.searchsorted(order, values, right=True)
    return (below + upto).float() / 2 - values.shape[-1] / 2


def _evenly(numbers: Tensor, most: int) -> Tensor:
    if len(numbers) <= most:
        return numbers
    return numbers[torch.linspace(0, len(numbers) - 1, most, device=numbers.device).long()]
