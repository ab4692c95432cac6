"""Does a map made of attention put a query near the keys that it attends to?"""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor

from attention_atlas.layout import looks
from attention_atlas.layout.alike import fit_kinship
from attention_atlas.layout.attended import AttentionGraph, attention_graph
from attention_atlas.layout.fidelity import (
    Dots,
    TokenInputs,
    attention_kept,
    baseline,
    neighbourhood,
    overlap,
)
from attention_atlas.layout.joint import join
from attention_atlas.layout.looks import find_looks, make_gaze
from attention_atlas.layout.methods import lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.newcomers import AttentionMap
from attention_atlas.layout.sight import Sight
from tests.layout.vectors import sight_of
from tests.tolerance import unit

HEADS = slice(0, 4)


def graph_of(dots: Dots, sight: Sight) -> AttentionGraph:
    heads = slice(0, len(dots.queries))
    found = find_looks(dots.queries, dots.keys, sight, heads)
    return attention_graph(dots.queries, dots.keys, found, [(sight, heads, heads)])


def start_of(dots: Dots) -> Tensor:
    joint = join(dots.queries, dots.keys, "attention")
    return as_points(joint.points(dots.queries, dots.keys), joint.metric)


def kept(dots: Dots, sight: Sight, places: Tensor) -> tuple[Tensor, Tensor]:
    heads = slice(0, len(dots.queries))
    return attention_kept(dots, [(sight, heads, heads)], places)


def like(dots: Dots, places: Tensor) -> Tensor:
    """Get the trustworthiness among queries and among keys, the mean of both: (heads,)."""
    kin, split = fit_kinship(dots.queries, dots.keys), dots.queries.shape[1]
    rows = torch.arange(split)
    of_queries = neighbourhood(kin.queries(dots.queries), places[:, :split], rows)[0]
    return (of_queries + neighbourhood(kin.keys(dots.keys), places[:, split:], rows)[0]) / 2


def some(heads: int, inputs: list[int], width: int = 6, seed: int = 0) -> Dots:
    numbers = torch.Generator().manual_seed(seed)
    of = torch.repeat_interleave(torch.arange(len(inputs)), torch.tensor(inputs))
    queries, keys = (torch.randn(heads, len(of), width, generator=numbers) for _ in range(2))
    return Dots(queries, keys, TokenInputs(of, of))


# The figures against plain loops ----------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_the_figures_are_those_of_plain_loops(causal: bool) -> None:
    dots = some(2, [9, 4, 12, 1, 7])
    sight = sight_of(dots, causal, special=[0])
    places = torch.randn(2, 66, 2, generator=torch.Generator().manual_seed(1))
    heads = slice(0, 2)
    strongest, visible = kept(dots, sight, places)
    chance = baseline(dots, [(sight, heads, heads)])["chance"]
    inputs = dots.tokens.query.numpy()
    for head in range(2):
        near, ranks, chances = [], [], []
        for row in range(33):
            seen = [key for key in range(33) if inputs[key] == inputs[row]]
            seen = [key for key in seen if key <= row] if causal else seen
            logit = {key: float(dots.queries[head, row] @ dots.keys[head, key]) for key in seen}
            apart = {
                key: float((places[head, row] - places[head, 33 + key]).norm()) for key in seen
            }
            if len(seen) >= 3:
                ranks.append(spearmanr(list(apart.values()), list(logit.values())).statistic)
            first = int(np.searchsorted(inputs, inputs[row]))
            ordinary = [key for key in seen if key != first]
            if row != first and len(ordinary) > 3:
                best = max(ordinary, key=lambda key: logit[key])
                near.append(best in sorted(ordinary, key=lambda key: apart[key])[:3])
                chances.append(3 / len(ordinary))
        assert float(strongest[head]) == pytest.approx(np.mean(near), abs=33 * unit())
        assert float(visible[head]) == pytest.approx(np.mean(ranks), abs=33 * unit())
        assert float(chance[head]) == pytest.approx(np.mean(chances), abs=33 * unit())


def test_the_overlap_of_islands_is_0_and_of_a_mixture_1() -> None:
    places = torch.randn(1, 400, 2, generator=torch.Generator().manual_seed(0))
    rows = torch.arange(400)
    assert float(overlap(places, 200, rows)) == pytest.approx(1, abs=0.1)
    assert float(overlap(places, 100, rows)) == pytest.approx(1, abs=0.1)
    places[:, 200:] += 50
    assert float(overlap(places, 200, rows)) == 0


# What is tied -----------------------------------------------------------------------------------


def test_the_first_look_is_the_strongest_ordinary_key() -> None:
    dots = some(3, [40, 5, 17])
    sight = sight_of(dots, causal=True, special=[0, 3])
    found = find_looks(dots.queries, dots.keys, sight, slice(0, 3))
    inputs = dots.tokens.query
    first = torch.searchsorted(inputs, inputs)
    for head in range(3):
        for row in range(len(inputs)):
            seen = list(range(int(first[row]), row + 1))
            ordinary = [key for key in seen if key - int(first[row]) not in (0, 3)]
            looked = found.key[head, row][found.seen[head, row]].tolist()
            assert len(set(looked)) == len(looked)
            assert set(looked) <= set(seen)
            if len(seen) <= looks.DRAWN:
                assert set(looked) == set(seen)
            if ordinary:
                logits = dots.queries[head, row] @ dots.keys[head].t()
                assert found.ordinary[head, row, 0]
                assert int(found.key[head, row, 0]) == max(ordinary, key=lambda k: float(logits[k]))
            else:
                assert not found.ordinary[head, row].any()


def test_no_tie_of_one_input_breaks_the_mask() -> None:
    dots = some(2, [30, 12, 25])
    graph = graph_of(dots, sight_of(dots, causal=True)).graph
    points = 2 * 67
    row, column = graph.row % points, graph.column % points
    cross = (row < 67) & (column >= 67)
    query, key = row[cross], column[cross] - 67
    own = dots.tokens.query[query] == dots.tokens.key[key]
    assert own.any()
    assert (key[own] <= query[own]).all()
    assert (~own).any()  # ties over the corpus are there too


def test_layers_with_other_masks_keep_to_their_own() -> None:
    dots = some(2, [30, 12, 25])
    sights = [(sight_of(dots, causal), slice(0, 1), slice(head, head + 1))
              for head, causal in enumerate((False, True))]  # fmt: skip
    found = [
        find_looks(dots.queries[here], dots.keys[here], sight, of) for sight, of, here in sights
    ]
    both = looks.Looks(*(torch.cat([getattr(part, name) for part in found])
                         for name in ("key", "logit", "seen", "ordinary")))  # fmt: skip
    graph = attention_graph(dots.queries, dots.keys, both, sights).graph
    for head, forbidden in enumerate((False, True)):
        mine = (graph.row // 134 == head) & (graph.row % 134 < 67) & (graph.column % 134 >= 67)
        query, key = graph.row[mine] % 134, graph.column[mine] % 134 - 67
        own = dots.tokens.query[query] == dots.tokens.key[key]
        assert bool((key[own] <= query[own]).all()) == forbidden


def test_the_graph_is_symmetric_and_heads_do_not_touch() -> None:
    dots = some(3, [20, 30])
    graph = graph_of(dots, sight_of(dots)).graph
    assert (graph.row // 100 == graph.column // 100).all()
    pairs = {(int(r), int(c)): float(w) for r, c, w in zip(graph.row, graph.column, graph.weight,
             strict=True)}  # fmt: skip
    assert all(pairs[column, row] == weight for (row, column), weight in pairs.items())
    assert all(0 < weight <= 1 for weight in pairs.values())


def test_alike_does_not_depend_on_the_basis_of_the_vectors() -> None:
    """Queries turned by a matrix and keys by its inverse transposed attend as before."""
    dots = some(1, [80], width=5)
    turn = torch.randn(5, 5, generator=torch.Generator().manual_seed(3)).double()
    queries, keys = dots.queries.double(), dots.keys.double()
    plain = fit_kinship(queries, keys)
    turned = fit_kinship(queries @ turn, keys @ torch.linalg.inv(turn).t())
    for own, other in (
        (plain.queries(queries), turned.queries(queries @ turn)),
        (plain.keys(keys), turned.keys(keys @ torch.linalg.inv(turn).t())),
    ):
        assert torch.allclose(torch.cdist(own, own), torch.cdist(other, other), atol=1e-6)


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_a_look_is_the_slope_of_the_divergence(share: float) -> None:
    """Against autograd in float64; settled rows count for less."""
    dots = some(1, [10])
    found = find_looks(dots.queries, dots.keys, sight_of(dots, special=[0]), slice(0, 1))
    gaze = make_gaze(found, 20).eager(1.5, share)
    start = torch.randn(2, 20, generator=torch.Generator().manual_seed(2)).double()
    places = start.clone().requires_grad_()
    spread = places.var(1, unbiased=False).sum().sqrt().detach() / looks.RADIUS
    gap = (places[:, gaze.query, None] - places[:, gaze.key.t()]) / spread
    away = gap.square().sum(0).detach()  # (R, K), the strongest ordinary key first
    close = (1 + gap.square().sum(0)).log() * -looks.FALL
    wanted, ordinary = gaze.pull.t().double(), gaze.ordinary.t() > 0
    settled = ((away < away[:, :1]) & ordinary).sum(1) < looks.NEAR
    assert settled.any() and not settled.all()
    by_row = torch.where(settled, share, 1.0)
    loss = torch.zeros((), dtype=torch.float64)
    for part, mask in ((1 - looks.WITH_SPECIAL, ordinary), (looks.WITH_SPECIAL, wanted > 0)):
        weight = (wanted * mask) / (wanted * mask).sum(1, keepdim=True)
        shown = close.masked_fill(~mask, -torch.inf).log_softmax(1)
        loss = loss - part * (weight * shown.masked_fill(~mask, 0)).sum(1) @ by_row.double()
    (slope,) = torch.autograd.grad(loss, places)
    small = 1e-4  # so short that the step is not held back
    step = gaze.step(start.float(), small) / small
    assert torch.allclose(step.double(), -slope * spread**2, atol=2e-3, rtol=2e-3)


# The map ------------------------------------------------------------------------------------------


OTHER_MAPS = [
    pytest.param(*each, marks=pytest.mark.full) for each in (("tsne", 2), ("umap", 3), ("tsne", 3))
]


@pytest.mark.parametrize(("method", "dims"), [("umap", 2), *OTHER_MAPS])
def test_near_means_attended_and_the_papers_way_does_less(
    minilm: Dots, method: str, dims: int
) -> None:
    if (method, dims) != ("umap", 3):  # two heads are enough of what is slower or runs often
        minilm = Dots(minilm.queries[:2], minilm.keys[:2], minilm.tokens)
    sight = sight_of(minilm)
    points = start_of(minilm)
    ours = lay_out(points, method, dims, graph_of(minilm, sight))
    papers = lay_out(points, method, dims, find_neighbours(points, 90))
    strongest, visible = kept(minilm, sight, ours)
    before, seen_before = kept(minilm, sight, papers)
    assert strongest.min() > 0.7
    assert visible.max() < -0.3
    assert visible.mean() < -0.4
    assert (strongest > before).all()
    assert visible.mean() < seen_before.mean()
    if (method, dims) == ("umap", 2):
        assert (like(minilm, ours) > like(minilm, papers)).all()
    if method == "umap":
        assert torch.equal(ours, lay_out(points, method, dims, graph_of(minilm, sight)))


def test_heads_together_are_as_good_as_alone(minilm: Dots) -> None:
    minilm = Dots(minilm.queries[:2], minilm.keys[:2], minilm.tokens)
    sight, points = sight_of(minilm), start_of(minilm)
    together = lay_out(points, "umap", 2, graph_of(minilm, sight))
    alone = Dots(minilm.queries[1:2], minilm.keys[1:2], minilm.tokens)
    places = lay_out(points[1:2], "umap", 2, graph_of(alone, sight))
    whole, part = kept(minilm, sight, together)[0][1], kept(alone, sight, places)[0][0]
    assert abs(float(whole - part)) < 0.06


@pytest.mark.full
def test_new_inputs_stand_near_what_they_attend_to_and_the_map_stays(minilm: Dots) -> None:
    fresh = minilm.tokens.query % 6 == 0

    def part(mask: Tensor) -> Dots:
        of = minilm.tokens.query[mask]
        return Dots(minilm.queries[:, mask], minilm.keys[:, mask], TokenInputs(of, of))

    old, new = part(~fresh), part(fresh)
    places = lay_out(start_of(old), "umap", 2, graph_of(old, sight_of(old)))
    known = AttentionMap(old.queries, old.keys, places)
    sides = ((new.queries, "query"), (new.keys, "key"))
    start = torch.cat([known.place_side(vectors, side, "umap") for vectors, side in sides], 1)
    sight = sight_of(new)
    found = find_looks(new.queries, new.keys, sight, HEADS)
    moved = known.place(new.queries, new.keys, found, "umap")
    before, after = kept(new, sight, start)[0], kept(new, sight, moved)[0]
    assert (after >= before).all()
    assert after.mean() > max(0.7, float(before.mean()))
    assert torch.equal(known.places, places)
    again = find_looks(old.queries, old.keys, sight_of(old), HEADS)
    stays = (known.place(old.queries, old.keys, again, "umap") == places).all(2).float().mean(1)
    # Of equal tokens a copy may lie at any; in the first layer many are (a word and its position).
    assert stays[0] > 0.1
    assert (stays[1:] > 0.9).all()


# Planted patterns ---------------------------------------------------------------------------------


def planted(kind: str) -> tuple[Dots, Sight, Tensor]:
    """A head that does one thing, over 60 inputs of 16 tokens: and the key each query wants."""
    inputs, length, width = 60, 16, 24
    numbers = torch.Generator().manual_seed(5)
    of = torch.arange(inputs).repeat_interleave(length)
    position = torch.arange(length).repeat(inputs)
    code = torch.randn(length, width, generator=numbers)
    topic = torch.randn(5, width, generator=numbers)
    word = torch.randint(0, 5, (inputs * length,), generator=numbers)
    noise = [0.3 * torch.randn(inputs * length, width, generator=numbers) for _ in range(2)]
    if kind == "previous":
        queries, keys = code[(position - 1).clamp_min(0)], code[position]
        wanted = (torch.arange(len(of)) - 1).where(position > 0, torch.arange(len(of)))
    elif kind == "sink":
        queries = code[:1].expand(len(of), -1)
        keys = torch.where((position == 0)[:, None], code[:1], 0.2 * code[position])
        wanted = torch.arange(len(of)) - position
    elif kind == "induction":  # eight words twice: a word wants what followed it the first time
        vocabulary = torch.randn(200, width, generator=numbers)
        half = torch.stack([torch.randperm(200, generator=numbers)[:8] for _ in range(inputs)])
        words = half.repeat(1, 2).view(-1)
        queries = vocabulary[words]
        keys = torch.where((position > 0)[:, None], vocabulary[words.roll(1)], code[:1])
        wanted = torch.where(position >= 8, torch.arange(len(of)) - 7, -1)
    else:  # topic: a word wants the words of its topic
        queries, keys = topic[word], topic[word]
        wanted = torch.full_like(of, -1)
    dots = Dots((queries + noise[0])[None], (keys + noise[1])[None], TokenInputs(of, of))
    return dots, sight_of(dots, causal=kind != "topic"), word if kind == "topic" else wanted


@pytest.mark.parametrize("kind", ["previous", "sink", "induction"])
def test_a_planted_head_shows_what_was_planted(kind: str) -> None:
    dots, sight, wanted = planted(kind)
    places = lay_out(start_of(dots), "umap", 2, graph_of(dots, sight))[0]
    count = len(wanted)
    rows = torch.arange(count)[(torch.arange(count) % 16 > 4) & (wanted >= 0)]
    near = []
    for row in rows.tolist():
        seen = torch.arange(row - row % 16, row + 1)
        apart = (places[row] - places[count + seen]).norm(dim=1)
        near.append(int(wanted[row]) in seen[apart.argsort()[:3]].tolist())
    assert np.mean(near) > 0.9
    if kind == "sink":  # it neither collapses the map nor falls out of it
        radius = (places - places.mean(0)).norm(dim=1)
        sinks = count + torch.arange(0, count, 16)
        assert radius[sinks].max() < 2 * radius.median() + radius.std()
        assert radius.median() > 0.2 * radius.max()


def test_a_planted_topic_head_shows_its_topics() -> None:
    dots, sight, topic = planted("topic")
    places = lay_out(start_of(dots), "umap", 2, graph_of(dots, sight))
    near = find_neighbours(places, 10, "euclidean").index[0]
    label = topic.repeat(2)
    assert (label[near] == label[:, None]).float().mean() > 0.9
    assert float(overlap(places, len(topic), torch.arange(len(label)))) > 0.4


# Bad input ----------------------------------------------------------------------------------------


def test_a_head_whose_vectors_are_all_equal_falls_on_one_point() -> None:
    dots = some(2, [20, 20])
    same = Dots(torch.ones_like(dots.queries), torch.ones_like(dots.keys), dots.tokens)
    mixed = Dots(torch.cat([same.queries[:1], dots.queries[1:]]),
                 torch.cat([same.keys[:1], dots.keys[1:]]), dots.tokens)  # fmt: skip
    places = lay_out(start_of(mixed), "umap", 2, graph_of(mixed, sight_of(mixed)))
    assert (places[0] == 0).all()
    assert places[1].isfinite().all()
    assert places[1].std() > 0


@pytest.mark.parametrize("tokens", [[1], [2], [1, 1, 1, 1], [5]])
def test_very_few_tokens_have_a_map(tokens: list[int]) -> None:
    dots = some(1, tokens)
    for method in ("umap", "tsne"):
        places = lay_out(start_of(dots), method, 2, graph_of(dots, sight_of(dots)))
        assert places.isfinite().all()
    strongest, _ = kept(dots, sight_of(dots), places)
    assert strongest.isnan().all() or tokens == [5]
