"""How far can a map be trusted?

Seven figures for each head, for the map, for PCA and for the same places shuffled:

- strongest: of the queries, how many have the key that they attend to most among the 3 nearest of
  the keys that they see; special tokens are left out on both sides, and queries that see no more
  than 3 ordinary keys. `chance` is the share if the 3 were drawn, `to_special` the share of queries
  whose strongest key is special;
- visible: the rank correlation of distance and logit over the keys that a query sees, the mean
  over queries; −1 is perfect;
- overlap: how many of a point's 15 nearest are of the other kind, against how many there would be
  if queries and keys were mixed;
- like: trustworthiness among queries and among keys alone (are points that are near on the map
  alike?), where alike means attending alike (`alike.py`);
- correlation: as the AttentionViz paper measures it, over all keys of the input whether the query
  sees them or not; trust and kept: trustworthiness, and the share of true neighbours kept, of
  queries and keys together in the space of the paper.

The first two in the full space say what the projection started from.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.alike import fit_kinship
from attention_atlas.layout.pca import pca
from attention_atlas.layout.sight import Sight, SightBlock, Sights
from attention_atlas.store.maps import OF_A_MAP

NEIGHBOURS = 15
NEAREST = 3
ROWS = 300  # sampled for trustworthiness; all points are ranked for each
ROWS_AN_INPUT = 64  # sampled for the correlation
ROWS_SEEN = 2000  # sampled for the strongest key and the correlation over visible keys
DISTANCES = 1 << 27  # at once


@dataclass(frozen=True)
class TokenInputs:
    """The input of each query and of each key, in the order of the points."""

    query: Tensor  # (N,)
    key: Tensor  # (M,)


def fidelity(
    points: Tensor, dots: "Dots", sights: Sights, places: Tensor, seed: int = 0
) -> dict[str, Tensor]:
    """Measure places (heads, N + M, dims) against points (heads, N + M, width) from `as_points`.

    Returns a figure for each head under its name, as in `store.maps.FIGURES`.
    """
    numbers = torch.Generator().manual_seed(seed)
    rows = torch.randperm(points.shape[1], generator=numbers)[:ROWS].to(points.device)
    shuffled = torch.randperm(points.shape[1], generator=numbers).to(points.device)
    split = dots.queries.shape[1]
    sights = [(sight.thinned(ROWS_SEEN), layer, here) for sight, layer, here in sights]
    kin = fit_kinship(dots.queries, dots.keys)
    alike = kin.queries(dots.queries), kin.keys(dots.keys)

    def figures(name: str, at: Tensor) -> dict[str, Tensor]:
        trust, kept = neighbourhood(points, at, rows)
        strongest, visible = attention_kept(dots, sights, at)
        both = [
            neighbourhood(vectors, shown, torch.randperm(shown.shape[1], generator=numbers)[:ROWS]
                          .to(points.device))[0]
            for vectors, shown in zip(alike, (at[:, :split], at[:, split:]), strict=True)
        ]  # fmt: skip
        found = (
            strongest, visible, overlap(at, split, rows), (both[0] + both[1]) / 2,
            correlation(dots, at), trust, kept,
        )  # fmt: skip
        return {f"{name}.{what}": value for what, value in zip(OF_A_MAP, found, strict=True)}

    return {
        **baseline(dots, sights),
        "full.correlation": correlation(dots, points),
        "full.visible": attention_kept(dots, sights, points)[1],
        **figures("map", places),
        **figures("pca", pca(points, places.shape[2])),
        **figures("shuffled", places[:, shuffled]),
    }


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


def attention_kept(dots: Dots, sights: Sights, at: Tensor) -> tuple[Tensor, Tensor]:
    """Get how often the strongest key is near, and the correlation over visible keys: (heads,)."""
    split = dots.queries.shape[1]
    near, ranks = _Mean(dots.queries), _Mean(dots.queries)
    for sight, layer, here in sights:
        for block in sight.blocks:
            logits = sight.logits(block, dots.queries[here], dots.keys[here], layer)
            apart = torch.cdist(
                at[here][:, block.query.clamp_min(0)],
                at[here][:, split + block.key.clamp_min(0)],
                compute_mode="donot_use_mm_for_euclid_dist",
            )  # (heads, inputs, n, m)
            judged, ordinary = _judged(sight, block)
            best = logits.masked_fill(~ordinary, -torch.inf).argmax(3, keepdim=True)
            nearer = (apart < apart.gather(3, best)) & ordinary
            near.add(here, nearer.sum(3) < NEAREST, judged)
            enough = block.seen.sum(2) >= NEAREST
            ranks.add(here, _seen_spearman(apart, logits, block.seen), enough)
    return near.mean, ranks.mean


def baseline(dots: Dots, sights: Sights) -> dict[str, Tensor]:
    """Get the chance that the strongest key is among the nearest, and how often it is special."""
    chance, special = _Mean(dots.queries), _Mean(dots.queries)
    for sight, layer, here in sights:
        for block in sight.blocks:
            judged, ordinary = _judged(sight, block)
            share = NEAREST / ordinary.sum(2).clamp_min(1)
            chance.add(here, share.expand(here.stop - here.start, -1, -1), judged)
            logits = sight.logits(block, dots.queries[here], dots.keys[here], layer)
            best = block.key.clamp_min(0)[None, :, None].expand_as(logits).gather(
                3, logits.argmax(3, keepdim=True)
            )[..., 0]  # fmt: skip
            rows = block.seen.any(2) & ~sight.special_queries[block.query.clamp_min(0)]
            special.add(here, sight.special_keys[best], rows)
    return {"chance": chance.mean, "to_special": special.mean}


def _judged(sight: Sight, block: SightBlock) -> tuple[Tensor, Tensor]:
    """Get the rows whose strongest key is judged (inputs, n), and the keys that count for it."""
    ordinary = block.seen & ~sight.special_keys[block.key.clamp_min(0)][:, None]
    rows = (block.query >= 0) & ~sight.special_queries[block.query.clamp_min(0)]
    return rows & (ordinary.sum(2) > NEAREST), ordinary


class _Mean:
    """A mean over rows of blocks, for each head."""

    def __init__(self, like: Tensor):
        self.total = torch.zeros(len(like), dtype=torch.float64, device=like.device)
        self.count = torch.zeros_like(self.total)

    def add(self, heads: slice, values: Tensor, rows: Tensor) -> None:
        """Add values (heads, inputs, n) of some rows (inputs, n)."""
        self.total[heads] += (values * rows).double().sum((1, 2))
        self.count[heads] += rows.sum()

    @property
    def mean(self) -> Tensor:
        return (self.total / self.count).float()  # NaN where there was no row


def _seen_spearman(apart: Tensor, logits: Tensor, seen: Tensor) -> Tensor:
    """Correlate the ranks of distance and logit along rows, over the keys seen."""
    x = _ranks(apart.masked_fill(~seen, torch.inf)) + apart.shape[-1] / 2
    y = _ranks(logits.neg().masked_fill(~seen, torch.inf)) + apart.shape[-1] / 2
    half = seen.sum(-1, keepdim=True) / 2
    x, y = ((of - half) * seen for of in (x, y))
    spread = x.square().sum(-1) * y.square().sum(-1)
    return -(x * y).sum(-1) / spread.sqrt().clamp_min(1e-12)


def overlap(places: Tensor, split: int, rows: Tensor, k: int = NEIGHBOURS) -> Tensor:
    """Get the share of the other kind among the k nearest, 1 if kinds are mixed: (heads,)."""
    count = places.shape[1]
    k = min(k, count - 1)
    if k < 1 or split in (0, count):
        return torch.full_like(places[:, 0, 0], torch.nan)
    is_key = torch.arange(count, device=places.device) >= split
    near = torch.stack([_apart(shown, rows).topk(k, 1, largest=False).indices for shown in places])
    other = is_key[near] != is_key[rows][None, :, None]  # (heads, rows, k)
    expected = torch.where(is_key[rows], split, count - split) / (count - 1)
    return (other.float().mean(2) / expected).mean(1)


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
