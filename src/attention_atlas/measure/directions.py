"""Along which few directions do a head's queries and keys meet?

A basis of neurons is arbitrary: q·k = (qP)·(kR) for every pair of matrices with P Rᵀ = 1. We choose
the pair in which few numbers say where the head looks. Keys are taken about their mean k̄, since
q·k̄ is the same for all keys of a row and leaves its softmax as it is:

    q·k = Σ_d a_d b_d + q·k̄      a = qP,  b = (k − k̄)R,  P Rᵀ = 1

svd       Σq^½ Σk^½ = U S Vᵀ, P = Σq^-½ U S^½, R = Σk^-½ V S^½, with Σq = E[q qᵀ], Σk = Cov(k). The
          first d directions are the best approximation of q·(k − k̄) with d products, over all
          pairs of queries and keys; direction d has the share S_d² of its square.
contrast  starts there and turns both sides so that they diagonalise the symmetric part of the
          contrastive covariance ΔC = E[a b_matchedᵀ] − E[a b_unmatchedᵀ]: matched keys are those
          that the query looks at (weighted by its weights), unmatched all that it may see.
          Direction d has the share λ_d of the mean gap of q·k between matched and unmatched keys.
          After Lee, Belinkov, Viégas & Wattenberg 2026 (arXiv 2602.04752), who take the singular
          vectors of ΔC for features that are known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from attention_atlas.measure.arrays import Floats
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.head import Head
from attention_atlas.names.token_text import shown
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.softmax import logits_of, normalised

Way = Literal["contrast", "svd"]
ENOUGH = 0.9  # share of the attention that the directions shown by default keep
FEWEST, MOST = 3, 8  # directions shown by default
ROWS = 768  # whose weights are read, drawn evenly from the inputs
LONGEST = 512  # rows of one input
FLOOR = 1e-6  # least spread of a direction, as a share of the largest
TOKENS = 8192  # whose vectors give the covariances


@dataclass(frozen=True)
class End:
    """Tokens at one end of a direction, strongest first."""

    side: Literal["query", "key"]
    sign: Literal[1, -1]
    tokens: tuple[str, ...]
    values: tuple[float, ...]  # mean coordinate of each


@dataclass(frozen=True)
class Directions:
    """The directions of one head's query–key form, the most telling first."""

    head: str
    way: Way
    query: Floats  # (D, D), a = q @ query
    key: Floats  # (D, D), b = (k − mean_key) @ key
    mean_key: Floats  # (D,)
    share: Floats  # (D,), of what `way` says; sums to 1
    kept: Floats  # (MOST + 1,), attention that the first 0, 1, 2 … directions give alone
    count: int  # the fewest that keep ENOUGH, from FEWEST to MOST
    ends: tuple[tuple[End, ...], ...]  # of the first `count` directions

    def coordinates(self, queries: Floats, keys: Floats) -> tuple[Floats, Floats, Floats]:
        """Return a (N, D), b (M, D) and q·k̄ (N,); a bᵀ + q·k̄ is q kᵀ."""
        q, k = queries.astype(np.float64), keys.astype(np.float64)
        return q @ self.query, (k - self.mean_key) @ self.key, q @ self.mean_key

    def __repr__(self) -> str:
        kept = f"{100 * self.kept[self.count]:.0f} %"
        return f"<{self.count} directions of {self.head} ({self.way}): {kept} of its attention>"


def directions(
    atlas: StoredAtlas, head: str | Head, k: int | None = None, way: Way = "contrast", seed: int = 0
) -> Directions:
    """Find the few directions that carry a head's attention; k sets how many, 3 to 8 otherwise."""
    if way not in get_args(Way):
        raise PickError(f"there is no way {way!r}; there is {' and '.join(get_args(Way))}")
    name = Head.parse(head)
    layer = atlas.layer_of(name)
    if not all(atlas.has(what, layer.layer, name.tower or None) for what in ("query", "key")):
        raise InputError(
            f"{atlas.path.name} has no query and key vectors of {name}; capture it again with them"
        )
    if k is not None and not 1 <= k <= layer.width:
        raise PickError(f"{name} is {layer.width} neurons wide; ask for 1 to {layer.width}")
    samples = _samples(atlas, name, seed)
    found = _svd(samples)
    if way == "contrast":
        found = _contrast(found, samples)
    found = _signed(found)
    kept = _kept(found, samples, min(layer.width, max(MOST, k or 0)))
    few = [d for d in range(min(FEWEST, layer.width), len(kept)) if kept[d] >= ENOUGH]
    count = k or min([*few, MOST, layer.width])
    ends = tuple(_ends(atlas, name, found, d) for d in range(count))
    return Directions(str(name), way, *found, kept, count, ends)


@dataclass(frozen=True)
class _Sample:
    """Some rows of one input of a head: what they see and what they look at."""

    query: Floats  # (R, D)
    key: Floats  # (M, D)
    weights: Floats  # (R, M)
    seen: Floats  # (R, M), 0 or 1
    scale: float
    softcap: float | None
    sink: float | None
    added: Floats | None


_Form = tuple[Floats, Floats, Floats, Floats]  # P, R, mean key, share


def _samples(atlas: StoredAtlas, head: Head, seed: int) -> list[_Sample]:
    """Read rows of inputs drawn evenly, until there are ROWS of them."""
    dice = np.random.default_rng(seed)
    atlas.need_vectors()
    kept = atlas.manifest.kept_inputs
    known = list(range(len(atlas))) if kept is None else sorted(kept)
    samples: list[_Sample] = []
    left = ROWS
    for number in dice.permutation(known):
        sample = _sample(atlas, head, int(number), dice, min(left, LONGEST))
        samples.append(sample)
        left -= len(sample.query)
        if left <= 0:
            break
    return samples


def _sample(
    atlas: StoredAtlas, head: Head, number: int, dice: np.random.Generator, most: int
) -> _Sample:
    query, key = (read(head, number).astype(np.float64) for read in (atlas.queries, atlas.keys))
    rows = np.sort(dice.permutation(len(query))[:most])
    layer = atlas.layer_of(head)
    seen, biases = atlas.layer_terms(head, number, rows)
    added = None if biases is None else biases[head.head].astype(np.float64)
    sample = _Sample(
        query[rows], key, np.empty(0), seen.astype(np.float64), layer.scale,
        layer.softcap, atlas.sink(head, number), added,
    )  # fmt: skip
    weights = _weights(sample, sample.query @ key.T)
    return replace(sample, weights=weights)


def _weights(sample: _Sample, products: Floats) -> Floats:
    """Return the softmax of products q·k (R, M), as the head computes it."""
    bias = None if sample.added is None else sample.added[None]
    seen = sample.seen.astype(bool)[None]
    logits = logits_of(products[None].copy(), sample.scale, sample.softcap, bias, seen)
    sink = None if sample.sink is None else np.array([sample.sink])
    return np.asarray(normalised(logits, sink)[0])


def _svd(samples: Sequence[_Sample]) -> _Form:
    """Return the form whose first directions give most of q·(k − k̄) over all pairs."""
    query = np.concatenate([sample.query for sample in samples])[:TOKENS]
    key = np.concatenate([sample.key for sample in samples])[:TOKENS]
    mean = key.mean(0)
    to_query, from_query = _roots(query.T @ query / len(query))
    to_key, from_key = _roots((key - mean).T @ (key - mean) / len(key))
    left, sizes, right = np.linalg.svd(to_query @ to_key)
    root = np.sqrt(sizes)
    share = sizes**2 / max((sizes**2).sum(), 1e-300)
    return (from_query @ left) * root, (from_key @ right.T) * root, mean, share


def _roots(covariance: Floats) -> tuple[Floats, Floats]:
    """Return the square root of a covariance and its inverse.

    Directions without any spread get a little, so that there is an inverse; nothing of q·k is lost.
    """
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, FLOOR * max(values[-1], 1e-30))
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T


def _contrast(form: _Form, samples: Sequence[_Sample]) -> _Form:
    """Turn the form so that directions tell matched from unmatched keys, most telling first."""
    query, key, mean, _ = form
    width = len(mean)
    delta, rows = np.zeros((width, width)), 0
    for sample in samples:
        b = (sample.key - mean) @ key  # (M, D)
        matched = sample.weights / np.maximum(sample.weights.sum(1, keepdims=True), 1e-300)
        even = sample.seen / np.maximum(sample.seen.sum(1, keepdims=True), 1)
        delta += (sample.query @ query).T @ ((matched - even) @ b)
        rows += len(sample.query)
    values, turn = np.linalg.eigh((delta + delta.T) / (2 * rows))
    order = np.argsort(-np.abs(values), kind="stable")
    total = values.sum()
    share = values[order] / (total if abs(total) > 1e-300 else 1.0)
    return query @ turn[:, order], key @ turn[:, order], mean, share


def _signed(form: _Form) -> _Form:
    """Choose the sign of each direction, which is free: its largest part of a query is positive.

    The keys' side is computed again as the inverse, which the steps before only come near to.
    """
    query, _, mean, share = form
    signed = query * np.sign(query[np.abs(query).argmax(0), np.arange(len(mean))])
    return signed, np.linalg.inv(signed).T, mean, share


def _kept(form: _Form, samples: Sequence[_Sample], most: int) -> Floats:
    """Return the share of attention that the first 0 to `most` directions give alone.

    1 less half the mean distance of the weights, over rows that see more than one key.
    """
    query, key, mean, _ = form
    same, rows = np.zeros(most + 1), 0
    for sample in samples:
        choice = sample.seen.sum(1) > 1
        a, b = sample.query @ query, (sample.key - mean) @ key
        for d in range(most + 1):
            alone = _weights(sample, a[:, :d] @ b[:, :d].T)
            apart = np.abs(alone - sample.weights).sum(1) / 2
            same[d] += (1 - apart)[choice].sum()
        rows += int(choice.sum())
    return same / max(rows, 1)


def _ends(atlas: StoredAtlas, head: Head, form: _Form, d: int, count: int = 6) -> tuple[End, ...]:
    """Return the tokens at both ends of a direction, of queries and of keys."""
    query, key, mean, _ = form
    layer = atlas.layer_of(head)
    found = []
    for side, stream in (("query", layer.queries), ("key", layer.keys)):
        read = atlas.queries if side == "query" else atlas.keys
        vectors = read(head)[:TOKENS].astype(np.float64)
        along = vectors @ query[:, d] if side == "query" else (vectors - mean) @ key[:, d]
        tokens = atlas.vector_tokens(stream)[: len(along)]
        texts = shown(tokens["text"].astype(str).tolist(), tokens["special"].tolist())
        names, which = np.unique(texts, return_inverse=True)
        means = np.bincount(which, along) / np.bincount(which)
        for sign in (1, -1):
            order = np.argsort(-sign * means, kind="stable")[:count]
            kept = [place for place in order if sign * means[place] > 0]
            found.append(
                End(side, sign, tuple(names[kept].tolist()), tuple(means[kept].tolist()))  # type: ignore[arg-type]
            )
    return tuple(found)
