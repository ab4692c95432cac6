"""Do queries push queries and keys push keys, and nothing else?"""

import pytest
import torch
from torch import Tensor

from attention_atlas.layout import tsne, umap
from attention_atlas.layout.alike import common_axes, fit_kinship
from attention_atlas.layout.attraction import attraction, tie
from attention_atlas.layout.graph import from_ties
from attention_atlas.layout.repulsion import pair_repulsion
from attention_atlas.layout.umap import Course
from tests.tolerance import unit

CROWDS = [(40, 40), (25, 55)]


def places_of(points: int, dims: int = 2, heads: int = 2) -> Tensor:
    return 3 * torch.randn(heads, points, dims, generator=torch.Generator().manual_seed(1))


def course_of(crowds: tuple[int, ...]) -> Course:
    """Return a course whose forces are those of a map made of attention; nothing else is asked."""
    return Course(None, crowds, 1, object())  # type: ignore[arg-type]


@pytest.mark.parametrize("crowds", CROWDS)
def test_a_step_of_umap_pushes_each_crowd_as_if_it_were_alone(crowds: tuple[int, int]) -> None:
    axes = places_of(sum(crowds)).permute(2, 0, 1).contiguous()
    shift = [3, 21, 70]
    pushed = umap._all_pushed(axes, shift, course_of(crowds))
    course, first = course_of(crowds), 0
    for size in crowds:
        part = axes[:, :, first : first + size]
        alone = torch.zeros_like(part)
        for by in (*shift, *(-by for by in shift)):
            gap = part - part.roll(-by, 2)
            square = gap.square().sum(0)
            force = 2 * gap / ((square + 1e-3) * (1 + course.curve[0] * square))
            alone += force.clamp(-umap.FORCE, umap.FORCE) * course.felt
        bound = 20 * unit() * 2 * len(shift) * umap.FORCE  # of some twenty roundings each
        assert (pushed[:, :, first : first + size] - alone).abs().max() < bound
        first += size


@pytest.mark.parametrize("crowds", CROWDS)
def test_without_ties_between_them_two_crowds_are_two_tsne_maps(crowds: tuple[int, int]) -> None:
    numbers, total = torch.Generator().manual_seed(2), sum(crowds)
    ends = []
    for head in range(2):
        first = head * total
        for size in crowds:
            pair = torch.randint(0, size, (2, 200), generator=numbers)
            ends.append(pair[:, pair[0] != pair[1]] + first)
            first += size
    source, target = torch.cat(ends, 1)
    weight = torch.rand(len(source), generator=numbers)
    graph = tsne.shares(from_ties(source, target, weight, 2 * total))
    ties = tie(graph, 2, crowds)
    of_head, within = ties.order.view(2, -1) // total, ties.order.view(2, -1) % total
    assert bool((of_head == torch.arange(2)[:, None]).all())
    assert ((within < crowds[0]) == (torch.arange(total) < crowds[0])).all()
    places = places_of(total)
    forces = tsne.choose_forces(places, crowds)
    slope = tsne.gradient(places, ties, forces, 1 / total)
    pull = attraction(places.view(-1, 2), ties).reshape(places.shape) / total
    first = 0
    for size in crowds:
        part = slice(first, first + size)
        potential, push = pair_repulsion(places[:, part].contiguous())
        normal = (potential.sum(1) - size)[:, None, None]
        alone = pull[:, part] - size / total * push / normal
        assert (slope[:, part] - alone).abs().max() < 100 * unit() * float(alone.abs().max())
        first += size


def test_the_start_puts_alike_together_and_attended_on_the_same_side() -> None:
    """Two topics: queries of a topic attend to its keys. The first axis tells the topics apart."""
    numbers = torch.Generator().manual_seed(3)
    topic = torch.arange(60) % 2 * 2.0 - 1
    vectors = 0.2 * torch.randn(2, 1, 60, 5, generator=numbers)
    queries, keys = vectors[0], vectors[1]
    queries[..., 0] += 3 * topic
    keys[..., 0] += topic
    start = common_axes(queries, keys, fit_kinship(queries, keys), 3)
    assert start.shape == (1, 120, 3)
    side = start[0, :, 0].sign()
    assert (side[:60] == side[60:]).all() and (side[:60] == side[0] * topic * topic[0]).all()
    spread = start[0].view(2, 60, 3).square().mean(1).sqrt()
    assert torch.allclose(spread, torch.ones(2, 3), atol=60 * unit())
