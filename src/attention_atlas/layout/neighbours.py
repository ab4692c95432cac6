"""Which points are nearest to each point, in every head?

Exact, by matrix product, in pieces that fit a fixed budget: (heads, points, points) never exists.
Found once for a head and shared by t-SNE, UMAP and the fidelity figures. Cosine distance is
1 − cos, as in openTSNE and umap-learn; a vector of length zero is at distance 1 from all others.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.device import has_triton
from attention_atlas.names.errors import InputError

METRICS = ("cosine", "euclidean")
SCORES_CPU = 1 << 21  # floats of one piece; 8 MB stay in the cache
SCORES_CUDA = 1 << 29
FEW, LONG = 128, 8192  # the most to find, the longest row, of the kernel


@dataclass(frozen=True)
class Neighbours:
    """The nearest points of each point, nearest first, itself left out."""

    index: Tensor  # (heads, points, k) int64
    distance: Tensor  # (heads, points, k) float32
    metric: str

    def nearest(self, k: int) -> "Neighbours":
        return Neighbours(self.index[..., :k], self.distance[..., :k], self.metric)

    @property
    def k(self) -> int:
        return self.index.shape[2]


def as_points(vectors: Tensor, metric: str) -> Tensor:
    """Turn vectors (heads, points, width) into points whose Euclidean distance is the metric.

    For cosine they are cut to length one, so that PCA and distances mean the same thing.
    """
    if metric not in METRICS:
        raise InputError(f"no metric is named {metric!r}; there are: {', '.join(METRICS)}")
    if vectors.ndim != 3 or not vectors.numel():
        raise InputError(
            f"a layout needs vectors of shape (heads, points, width), not {tuple(vectors.shape)}"
        )
    vectors = vectors.float()
    bad = ~vectors.isfinite().all(2).all(1)  # (heads,)
    if bad.any():
        heads = ", ".join(str(head) for head in bad.nonzero()[:5, 0].tolist())
        raise InputError(
            f"{int(bad.sum())} of {len(bad)} heads hold NaN or infinite vectors "
            f"(numbers {heads}); capture the model in float32, or leave these heads out"
        )
    return torch.nn.functional.normalize(vectors, dim=2) if metric == "cosine" else vectors


def find_neighbours(
    points: Tensor, k: int, metric: str = "cosine", among: Tensor | None = None
) -> Neighbours:
    """Find the k nearest of each point among the points themselves, or among given others.

    `points` and `among` come from `as_points`. With fewer points than k there are fewer neighbours.
    """
    others = points if among is None else among
    # x·y − |y|²/2 falls as |x − y| grows
    less = others.square().sum(2).div_(2) if metric == "euclidean" else None
    index, score = best_partners(points, others, k, less, itself=among is not None)
    return Neighbours(index, _distance(points, score, metric), metric)


def best_partners(
    points: Tensor, others: Tensor, k: int, less: Tensor | None = None, itself: bool = True
) -> tuple[Tensor, Tensor]:
    """Find the k others (heads, M, width) with the largest dot product, less what each costs.

    Returns their numbers and scores (heads, N, k), best first. Without `itself`, points and others
    are the same and a point is not its own partner.
    """
    heads, rows = points.shape[:2]
    k = min(k, others.shape[1] - (not itself))
    index = torch.empty(heads, rows, k, dtype=torch.int64, device=points.device)
    score = torch.empty(heads, rows, k, device=points.device)
    for head, row in _pieces(heads, rows, others.shape[1], points.is_cuda):
        piece = points[head, row] @ others[head].transpose(1, 2)  # (some heads, some rows, others)
        cost, own = None if less is None else less[head], None if itself else row.start
        score[head, row], index[head, row] = largest(piece, k, cost, own)
    return index, score


def largest(
    scores: Tensor, k: int, less: Tensor | None = None, own: int | None = None
) -> tuple[Tensor, Tensor]:
    """Find the k largest of each row (heads, rows, M), less what a column costs (heads, M).

    Returns their values and columns, largest first; may change the scores. `own` is the number of
    the first row if rows are some of the columns: a row's own column is left out.
    """
    if scores.is_cuda and has_triton() and 0 < k <= FEW and scores.shape[2] <= LONG:
        from attention_atlas.layout.fused_rows import best_of_rows

        return best_of_rows(scores, k, less, own)
    if less is not None:
        scores -= less[:, None]
    if own is not None:
        scores.diagonal(offset=own, dim1=1, dim2=2).fill_(-torch.inf)
    top = scores.topk(k, dim=2)
    return top.values, top.indices


def _distance(points: Tensor, score: Tensor, metric: str) -> Tensor:
    if metric == "cosine":
        return (1 - score).clamp_min_(0)
    squares = points.square().sum(2, keepdim=True)
    return (squares - 2 * score).clamp_min_(0).sqrt_()


def _pieces(heads: int, rows: int, columns: int, cuda: bool) -> list[tuple[slice, slice]]:
    budget = SCORES_CUDA if cuda else SCORES_CPU
    tall = max(1, min(rows, budget // columns))
    wide = max(1, min(heads, budget // (tall * columns)))
    return [
        (slice(head, head + wide), slice(row, min(row + tall, rows)))
        for head in range(0, heads, wide)
        for row in range(0, rows, tall)
    ]
