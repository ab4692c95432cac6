"""How is a map's graph made of attention itself?

Three kinds of ties join the queries (heads, N, width) and keys (heads, M, width) of a head:

- attended: a query with the keys that it attends to most in its own input, ordinary and special
  keys each among themselves, so that a sink does not hide the others;
- across: a query with the keys of the whole map that it prefers, and a key with the queries that
  prefer it. Of q·k only (q − mean q)·(k − mean k) counts: what all queries like in a key (a sink)
  would tie everything to it. Each is divided by its spread, so that long keys do not win always;
- alike: queries with queries that would attend alike, keys with keys likewise (`alike.py`).

Pairs of one input that the mask forbids are not tied. UMAP and t-SNE take the same graph, and both
let every query look at its keys while they move (`looks.py`). Points push only points of their own
kind. So queries and keys are two maps that lie on each other: each can keep like with like, and
nothing but attention decides how they lie.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.alike import common_axes, fit_kinship
from attention_atlas.layout.fuzzy import fade, memberships
from attention_atlas.layout.graph import Graph, from_ties
from attention_atlas.layout.looks import LookForce, Looks, make_gaze
from attention_atlas.layout.methods import DIMS
from attention_atlas.layout.neighbours import best_partners, find_neighbours
from attention_atlas.layout.sight import Sights

ALIKE, ACROSS = 30, 15  # ties of each point
ATTENDED_SUM, SPECIAL_SUM = 2.6, 1.2  # what the attended ties of a query add up to
ATTENDED_BY, SPECIAL_BY, ACROSS_BY = 0.8, 0.1, 0.1  # strength of each kind
LEAST = 1 / 64  # weaker ties are left out


@dataclass(frozen=True)
class AttentionGraph:
    """The ties of all points of some heads, and what each query looks at."""

    graph: Graph
    gaze: LookForce
    start: Tensor  # (heads, N + M, 3) places to begin with
    crowds: tuple[int, int]  # N and M: points push only points of their own kind
    kin: tuple[Tensor, Tensor]  # what queries and keys are like: (heads, N or M, width)


Ties = tuple[Tensor, Tensor, Tensor]  # source, target (rows of the graph), weight


def attention_graph(queries: Tensor, keys: Tensor, looks: Looks, sights: Sights) -> AttentionGraph:
    """Make the graph of queries (heads, N, width) and keys (heads, M, width)."""
    heads, count = queries.shape[:2]
    points = count + keys.shape[1]
    kin = fit_kinship(queries, keys)
    alike_queries, alike_keys = kin.queries(queries), kin.keys(keys)
    centred = queries - kin.query_mean, keys - kin.key_mean
    to_keys = best_partners(centred[0], centred[1] / _length(alike_keys), ACROSS)
    to_queries = best_partners(centred[1], centred[0] / _length(alike_queries), ACROSS)
    pieces = [
        _attended(looks, points, True),
        _attended(looks, points, False),
        _alike(alike_queries, points, 0),
        _alike(alike_keys, points, count),
        _across(*to_keys, sights, points, True),
        _across(*to_queries, sights, points, False),
    ]
    source, target, weight = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    graph = from_ties(source, target, weight, heads * points)
    start = common_axes(queries, keys, kin, max(DIMS))
    kin_of = alike_queries, alike_keys
    return AttentionGraph(graph, make_gaze(looks, points), start, (count, keys.shape[1]), kin_of)


def _attended(looks: Looks, points: int, ordinary: bool) -> Ties:
    """Tie each query to its strongest keys, ordinary or special ones."""
    wanted = looks.ordinary if ordinary else looks.seen & ~looks.ordinary
    logit = looks.logit.masked_fill(~wanted, -torch.inf)
    best = logit.amax(2, keepdim=True)
    drop = (best - logit).masked_fill(~wanted, torch.inf)
    most = wanted.sum(2, keepdim=True) - 1e-3
    weight = fade(drop, most.clamp(1.0, ATTENDED_SUM if ordinary else SPECIAL_SUM))
    source = torch.arange(looks.key.shape[1], device=drop.device)[:, None].expand_as(looks.key)
    target = looks.key + looks.key.shape[1]
    return _kept(source, target, weight * (ATTENDED_BY if ordinary else SPECIAL_BY), points)


def _alike(vectors: Tensor, points: int, first: int) -> Ties:
    if vectors.shape[1] < 2:  # a lone point has nothing to be like
        none = torch.zeros(0, dtype=torch.int64, device=vectors.device)
        return none, none, vectors.new_zeros(0)
    near = find_neighbours(vectors, ALIKE, "euclidean")
    source = torch.arange(vectors.shape[1], device=vectors.device)[:, None].expand_as(near.index)
    return _kept(source + first, near.index + first, memberships(near), points)


def _across(index: Tensor, score: Tensor, sights: Sights, points: int, queries: bool) -> Ties:
    """Tie points to their best partners over the map, but for those that the mask forbids."""
    mine = torch.arange(index.shape[1], device=index.device)[:, None].expand_as(index)
    query, key = (mine, index) if queries else (index, mine)
    weight = fade(score[..., :1] - score, score.new_full((1,), math.log2(index.shape[2] + 1)))
    inputs, of_keys = sights[0][0].query_inputs, sights[0][0].key_inputs  # alike in all layers
    for sight, _, here in sights:
        own = inputs[query[here]] == of_keys[key[here]]
        weight[here] = weight[here].masked_fill(own & ~sight.sees(query[here], key[here]), 0)
    return _kept(query, key + len(inputs), weight * ACROSS_BY, points)


def _kept(source: Tensor, target: Tensor, weight: Tensor, points: int) -> Ties:
    """Number points through all heads and leave weak ties out; (heads, rows, k) each."""
    first = torch.arange(len(weight), device=weight.device)[:, None, None] * points
    kept = weight > LEAST
    return (source + first)[kept], (target + first)[kept], weight[kept].clamp_max(1.0)


def _length(vectors: Tensor) -> Tensor:
    return vectors.square().sum(2, keepdim=True).sqrt().clamp_min(1e-12)
