"""How are queries and keys brought into one space without changing any attention?

Attention sees only softmax(q·k) over the keys of a row, so two things are free (AttentionViz, 5.1):

- all keys may move by one vector: each row gains a constant, which softmax cancels;
- queries may be multiplied by c and keys divided by it.

`raw` uses neither. `translate` moves keys until both centroids meet. `scale` chooses c, then
moves keys. `lift` gives keys one more dimension, √(M² − |k|²), and queries a 0 there: all keys get
length M, and Euclidean distance falls strictly with q·k. `attention` starts from `scale`, but which
points are tied does not come from distances in this space. (A soft cap or a sink sees the constant;
weights are then always computed from the vectors as captured, never from these.)

c maximises a weighted correlation over sampled pairs: between minus the Euclidean distance of
c q and (k − mean k) / c + c mean q, and the part of q·k that softmax sees, q·(k − mean k); a pair
weighs exp(−(d / d̄)²), d̄ the mean distance, so near pairs count most.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_atlas.layout.device import has_triton
from attention_atlas.names.errors import InputError

PAIRS = 128  # queries and keys sampled for c; all pairs of them are used
GRID = torch.linspace(-2.5, 2.5, 41).exp()  # times the c at which both spread equally
SEARCHES = 3  # times that the grid is moved where the best c is at its end


@dataclass(frozen=True)
class Joint:
    """The numbers that bring one head's vectors, and later ones, into the joint space."""

    name: str
    metric: str
    c: Tensor  # (heads,)
    shift: Tensor  # (heads, width) added to keys after division by c
    radius: Tensor  # (heads,) the length keys are lifted to; 0 where they are not

    def queries(self, queries: Tensor) -> Tensor:
        """Bring queries (heads, N, width) into the joint space."""
        scaled = queries * self.c[:, None, None]
        return _with_height(scaled, torch.zeros_like(scaled[..., 0])) if self.lifted else scaled

    def keys(self, keys: Tensor) -> Tensor:
        moved = keys / self.c[:, None, None] + self.shift[:, None]
        if not self.lifted:
            return moved
        height = self.radius[:, None].square() - moved.square().sum(2)
        return _with_height(moved, height.clamp_min(0).sqrt())

    def points(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Stack queries, then keys, in the joint space; returns (heads, 2N, width)."""
        return torch.cat([self.queries(queries), self.keys(keys)], 1)

    @property
    def lifted(self) -> bool:
        return self.name == "lift"


def raw(queries: Tensor, keys: Tensor) -> Joint:
    c, shift = torch.ones_like(queries[:, 0, 0]), torch.zeros_like(queries[:, 0])
    return Joint("raw", "cosine", c, shift, torch.zeros_like(c))


def translate(queries: Tensor, keys: Tensor) -> Joint:
    c = torch.ones_like(queries[:, 0, 0])
    return Joint("translate", "cosine", c, _meeting(queries, keys, c), torch.zeros_like(c))


def scale(queries: Tensor, keys: Tensor) -> Joint:
    c = best_scale(queries, keys)
    return Joint("scale", "cosine", c, _meeting(queries, keys, c), torch.zeros_like(c))


def lift(queries: Tensor, keys: Tensor) -> Joint:
    plain = raw(queries, keys)
    longest = keys.norm(dim=2).amax(1)
    return Joint("lift", "euclidean", plain.c, plain.shift, longest)


def attention(queries: Tensor, keys: Tensor) -> Joint:
    """Fit `scale`, from which the map starts; its ties are made of attention (`attended.py`)."""
    return replace(scale(queries, keys), name="attention")


JOINTS: dict[str, Callable[[Tensor, Tensor], Joint]] = {
    "attention": attention,
    "raw": raw,
    "translate": translate,
    "scale": scale,
    "lift": lift,
}


def join(queries: Tensor, keys: Tensor, name: str) -> Joint:
    """Fit one way of the table to queries (heads, N, width) and keys (heads, M, width)."""
    if name not in JOINTS:
        raise InputError(f"no normalisation is named {name!r}; there are: {', '.join(JOINTS)}")
    if queries.shape[0] != keys.shape[0] or queries.shape[2] != keys.shape[2]:
        raise InputError(
            f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)} "
            "must agree in heads and width"
        )
    return JOINTS[name](queries, keys)


def best_scale(queries: Tensor, keys: Tensor) -> Tensor:
    """Find the c of each head (heads,) by a grid and a parabola through its best three points.

    Where the best lies at the end of the grid, the grid moves there. A head whose correlation has
    no top within reach gets the c at which queries and keys spread equally.
    """
    a, b = _some(queries), _some(keys)
    a_mean, b_mean = queries.mean(1, keepdim=True), keys.mean(1, keepdim=True)
    b = b - b_mean
    dot = a @ b.transpose(1, 2)  # (heads, pairs, pairs): what softmax sees
    a = a - a_mean
    a2, b2 = a.square().sum(2)[:, :, None], b.square().sum(2)[:, None]
    cross = 2 * a @ b.transpose(1, 2)
    equal = (b2.mean((1, 2)) / a2.mean((1, 2)).clamp_min(1e-12)).clamp(1e-12, 1e12) ** 0.25
    centre = equal
    for _ in range(SEARCHES):
        tried = centre * GRID.to(equal)[:, None]  # (grid, heads)
        if queries.is_cuda and has_triton():
            from attention_atlas.layout.fused_scale import scale_scores

            scores = scale_scores(tried, a2, b2, cross, dot)
        else:
            scores = torch.cat(
                [
                    weighted_correlation(a2 * c2 + b2 / c2 - cross, dot)
                    for c2 in torch.split(tried.square()[:, :, None, None], 1)
                ]
            )
        best = scores.argmax(0)
        at_end = (best == 0) | (best == len(GRID) - 1)
        best_c = centre * _peak(scores)
        if not at_end.any():
            return best_c
        centre = torch.where(at_end, tried.gather(0, best[None])[0], centre)
    return torch.where(at_end, equal, best_c)


def weighted_correlation(square: Tensor, dot: Tensor) -> Tensor:
    """Correlate minus distance with dot product (…, heads, pairs, pairs), near pairs first."""
    distance = square.clamp_min(0).sqrt()
    weight = torch.exp(
        -(distance / distance.mean((-2, -1), keepdim=True).clamp_min(1e-12)).square()
    )
    weight = weight / weight.sum((-2, -1), keepdim=True)
    x = -distance + (weight * distance).sum((-2, -1), keepdim=True)
    y = dot - (weight * dot).sum((-2, -1), keepdim=True)
    spread = (weight * x * x).sum((-2, -1)) * (weight * y * y).sum((-2, -1))
    return (weight * x * y).sum((-2, -1)) / spread.clamp_min(1e-24).sqrt()


def _peak(scores: Tensor) -> Tensor:
    """Find the factor (heads,) at the top of scores (grid, heads), between grid points."""
    step = float(torch.log(GRID[1] / GRID[0]))
    best = scores.argmax(0).clamp(1, len(GRID) - 2)[None]
    left, top, right = (scores.gather(0, best + side)[0] for side in (-1, 0, 1))
    bend = (left - 2 * top + right).clamp_max(-1e-12)
    off = ((left - right) / (2 * bend)).clamp(-1, 1)
    return GRID.to(scores)[best[0]] * torch.exp(off * step)


def _meeting(queries: Tensor, keys: Tensor, c: Tensor) -> Tensor:
    return queries.mean(1) * c[:, None] - keys.mean(1) / c[:, None]


def _some(vectors: Tensor) -> Tensor:
    """Take up to PAIRS vectors, evenly spaced, so that no seed is needed."""
    count = vectors.shape[1]
    picked = torch.linspace(0, count - 1, min(count, PAIRS), device=vectors.device).long()
    return vectors[:, picked]


def _with_height(vectors: Tensor, height: Tensor) -> Tensor:
    return torch.cat([vectors, height[..., None]], 2)
