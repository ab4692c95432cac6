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

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.alike import fit_kinship
from attention_atlas.layout.apart import distances, from_rows, head_slices
from attention_atlas.layout.device import has_triton
from attention_atlas.layout.neighbours import largest
from attention_atlas.layout.pca import pca
from attention_atlas.layout.sight import Sight, SightBlock, Sights
from attention_atlas.store.maps import OF_A_MAP

NEIGHBOURS = 15
NEAREST = 3
ROWS = 300  # sampled for trustworthiness; all points are ranked for each
ROWS_ALIKE = 200  # of queries, and of keys, for trustworthiness among like
ROWS_AN_INPUT = 64  # sampled for the correlation
SHORT = 1024  # a row that a GPU ranks by comparing all its pairs
ROWS_SEEN = 1000  # sampled for the strongest key and the correlation over visible keys


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
    maps = [places, pca(points, places.shape[2]), places[:, shuffled]]
    kin = fit_kinship(dots.queries, dots.keys)
    among = [
        neighbourhoods(vectors, [at[:, kind] for at in maps],
                       _some(vectors.shape[1], numbers).to(points.device))
        for vectors, kind in ((kin.queries(dots.queries), slice(0, split)),
                              (kin.keys(dots.keys), slice(split, None)))
    ]  # fmt: skip
    both = [(of_queries[0] + of_keys[0]) / 2 for of_queries, of_keys in zip(*among, strict=True)]
    *of_maps, full = attentions_kept(dots, sights, [*maps, points])
    *ranks, full_ranks = correlations(dots, [*maps, points])
    near = neighbourhoods(points, maps, rows)
    found = {**baseline(dots, sights), "full.correlation": full_ranks, "full.visible": full[1]}
    for number, name in enumerate(("map", "pca", "shuffled")):
        figures = (
            *of_maps[number], overlap(maps[number], split, rows), both[number], ranks[number],
            *near[number],
        )  # fmt: skip
        found |= {f"{name}.{what}": value for what, value in zip(OF_A_MAP, figures, strict=True)}
    return found


def _some(count: int, numbers: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=numbers)[:ROWS_ALIKE]


@dataclass(frozen=True)
class Dots:
    """What attention compares: queries (heads, N, width), keys (heads, M, width), their inputs."""

    queries: Tensor
    keys: Tensor
    tokens: TokenInputs


def correlation(dots: Dots, at: Tensor) -> Tensor:
    """Correlate distance at places (heads, N + M, width) with the dot product: (heads,)."""
    return correlations(dots, [at])[0]


def correlations(dots: Dots, maps: Sequence[Tensor]) -> list[Tensor]:
    """Get the correlation of each of several maps; inputs of one length are ranked together."""
    split, heads = dots.queries.shape[1], len(dots.queries)
    totals, count = [dots.queries.new_zeros(heads) for _ in maps], 0
    for rows, columns in _same_lengths(dots.tokens):  # (inputs, n), (inputs, m)
        dot = dots.queries[:, rows] @ dots.keys[:, columns].transpose(2, 3)
        wanted = _ranks(dot)  # (heads, inputs, n, m)
        for total, at in zip(totals, maps, strict=True):
            apart = torch.cdist(at[:, rows], at[:, split + columns])
            total += _agreement(_ranks(apart), wanted).mean(2).sum(1)
        count += len(rows)
    return [total / count if count else torch.full_like(total, torch.nan) for total in totals]


def _same_lengths(tokens: TokenInputs) -> list[tuple[Tensor, Tensor]]:
    """Return the rows and columns of all inputs with at least 3 keys, by their lengths.

    With fewer keys two ranks always agree or disagree.
    """
    by_length: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}
    for number in sorted(set(tokens.query.tolist())):
        rows = _evenly((tokens.query == number).nonzero()[:, 0], ROWS_AN_INPUT)
        columns = (tokens.key == number).nonzero()[:, 0]
        if len(columns) >= 3:
            by_length.setdefault((len(rows), len(columns)), []).append((rows, columns))
    return [
        (torch.stack([rows for rows, _ in alike]), torch.stack([columns for _, columns in alike]))
        for alike in by_length.values()
    ]


def attention_kept(dots: Dots, sights: Sights, at: Tensor) -> tuple[Tensor, Tensor]:
    """Get how often the strongest key is near, and the correlation over visible keys: (heads,)."""
    return attentions_kept(dots, sights, [at])[0]


def attentions_kept(
    dots: Dots, sights: Sights, maps: Sequence[Tensor]
) -> list[tuple[Tensor, Tensor]]:
    """Get the same for each of several maps."""
    split = dots.queries.shape[1]
    means = [(_Mean(dots.queries), _Mean(dots.queries)) for _ in maps]
    for sight, layer, here in sights:
        for block in sight.blocks:
            logits = sight.logits(block, dots.queries[here], dots.keys[here], layer)
            judged, ordinary = _judged(sight, block)
            best = logits.masked_fill(~ordinary, -torch.inf).argmax(3, keepdim=True)
            wanted = _seen_ranks(logits.neg_(), block.seen)
            enough = block.seen.sum(2) >= NEAREST
            for (near, ranks), at in zip(means, maps, strict=True):
                apart = distances(
                    at[here][:, block.query.clamp_min(0)],
                    at[here][:, split + block.key.clamp_min(0)],
                )  # (heads, inputs, n, m)
                nearer = (apart < apart.gather(3, best)) & ordinary
                near.add(here, nearer.sum(3) < NEAREST, judged)
                shown = _seen_ranks(apart, block.seen)
                ranks.add(here, -_agreement(shown, wanted), enough)
    return [(near.mean, ranks.mean) for near, ranks in means]


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


def _seen_ranks(values: Tensor, seen: Tensor) -> Tensor:
    """Rank the keys seen along rows, with mean 0; the others are 0."""
    ranks = _ranks(values.masked_fill(~seen, torch.inf)) + values.shape[-1] / 2
    return (ranks - seen.sum(-1, keepdim=True) / 2) * seen


def overlap(places: Tensor, split: int, rows: Tensor, k: int = NEIGHBOURS) -> Tensor:
    """Get the share of the other kind among the k nearest, 1 if kinds are mixed: (heads,)."""
    count = places.shape[1]
    k = min(k, count - 1)
    if k < 1 or split in (0, count):
        return torch.full_like(places[:, 0, 0], torch.nan)
    is_key = torch.arange(count, device=places.device) >= split
    near = nearest(places, rows, k)
    other = is_key[near] != is_key[rows][None, :, None]  # (heads, rows, k)
    expected = torch.where(is_key[rows], split, count - split) / (count - 1)
    return (other.float().mean(2) / expected).mean(1)


def spearman(a: Tensor, b: Tensor) -> Tensor:
    """Correlate the ranks along the last axis; equal values share their mean rank."""
    return _agreement(_ranks(a), _ranks(b))


def _agreement(x: Tensor, y: Tensor) -> Tensor:
    """Correlate along the last axis, where both have mean 0."""
    spread = x.square().sum(-1) * y.square().sum(-1)
    return (x * y).sum(-1) / spread.sqrt().clamp_min(1e-12)


def neighbourhood(
    points: Tensor, places: Tensor, rows: Tensor, k: int = NEIGHBOURS
) -> tuple[Tensor, Tensor]:
    """Get trustworthiness and the share of the k nearest kept, over some rows: (heads,) each."""
    return neighbourhoods(points, [places], rows, k)[0]


def neighbourhoods(
    points: Tensor, maps: Sequence[Tensor], rows: Tensor, k: int = NEIGHBOURS
) -> list[tuple[Tensor, Tensor]]:
    """Get the same for each of several maps; the true distances are ordered once."""
    count = points.shape[1]
    k = min(k, (count - 1) // 2)
    if k < 1:
        unknown = torch.full_like(points[:, 0, 0], torch.nan)
        return [(unknown, unknown) for _ in maps]
    found: list[list[tuple[Tensor, Tensor]]] = [[] for _ in maps]
    most = len(rows) * k * (2 * count - 3 * k - 1)
    for heads in head_slices(points, len(rows)):
        distance = from_rows(points[heads], rows)  # (heads, rows, points)
        near = [nearest(places[heads], rows, k) for places in maps]
        places_of = _counts_below(distance, [distance.gather(2, index) for index in near])
        for figures, below in zip(found, places_of, strict=True):
            rank = below + 1
            trust = 1 - 2 * (rank - k).clamp_min(0).sum((1, 2)) / most
            figures.append((trust, (rank <= k).float().mean((1, 2))))
    return [
        (torch.cat([trust for trust, _ in figures]), torch.cat([kept for _, kept in figures]))
        for figures in found
    ]


def _counts_below(rows: Tensor, wanted: list[Tensor]) -> list[Tensor]:
    """Count the numbers of each row (…, M) below each of several lists (…, k) of them."""
    if rows.is_cuda and has_triton():
        from attention_atlas.layout.fused_rows import count_below

        counts = count_below(rows, torch.cat(wanted, -1))
        return list(torch.split(counts, wanted[0].shape[-1], -1))
    ordered = rows.sort(-1).values
    return [torch.searchsorted(ordered, values) for values in wanted]


def nearest(places: Tensor, rows: Tensor, k: int) -> Tensor:
    """Find the k nearest places of some, from (heads, points, dims); returns (heads, rows, k)."""
    parts = [
        largest(from_rows(places[heads], rows).neg_(), k)[1]
        for heads in head_slices(places, len(rows))
    ]
    return torch.cat(parts)


def _ranks(values: Tensor) -> Tensor:
    """Rank along the last axis, with mean 0."""
    if values.is_cuda and has_triton() and 0 < values.shape[-1] <= SHORT and values.numel():
        from attention_atlas.layout.fused_rows import row_ranks

        return row_ranks(values)
    values = values.contiguous()
    order = values.sort(-1).values
    below = torch.searchsorted(order, values)
    upto = torch.searchsorted(order, values, right=True)
    return (below + upto).float() / 2 - values.shape[-1] / 2


def _evenly(numbers: Tensor, most: int) -> Tensor:
    if len(numbers) <= most:
        return numbers
    return numbers[torch.linspace(0, len(numbers) - 1, most, device=numbers.device).long()]
