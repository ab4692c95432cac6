"""Are the sums of the CUDA kernels those of plain torch?

Runs where there is a CUDA device; most of it also without one, by the interpreter of Triton: `make
kernels`.
"""

import os

import pytest
import torch

from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.attraction import attraction, tie
from attention_atlas.layout.device import has_triton
from attention_atlas.layout.fidelity import _ranks
from attention_atlas.layout.graph import symmetric
from attention_atlas.layout.joint import best_scale, weighted_correlation
from attention_atlas.layout.likeness import SIDES, STRICT, towards_fused, towards_like
from attention_atlas.layout.looks import Looks, make_gaze
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.repulsion import pair_repulsion

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
pytestmark = pytest.mark.skipif(
    not has_triton() or not (ON_GPU or os.environ.get("TRITON_INTERPRET")),
    reason="needs Triton, and a CUDA device or TRITON_INTERPRET=1",
)
of_a_gpu = pytest.mark.skipif(not ON_GPU, reason="needs a CUDA device")


@of_a_gpu
@pytest.mark.parametrize("dims", [2, 3])
def test_fused_forces_are_the_plain_ones(dims: int) -> None:
    from attention_atlas.layout import fused

    numbers = torch.Generator().manual_seed(0)
    points = as_points(torch.randn(2, 700, 16, generator=numbers), "cosine").to(DEVICE)
    places = 5 * torch.randn(2, 700, dims, generator=numbers).to(DEVICE)
    near = find_neighbours(points, 90)
    ties = tie(symmetric(near.index, affinities(near, 30.0), "mean"), 2)
    flat = places.view(-1, dims)
    assert torch.allclose(fused.attraction(flat, ties), attraction(flat, ties), atol=1e-5)
    for ours, plain in zip(fused.repulsion(places), pair_repulsion(places.double()), strict=True):
        assert torch.allclose(ours.double(), plain, rtol=1e-4, atol=1e-4)


@of_a_gpu
@pytest.mark.parametrize("method", METHODS)
def test_a_run_on_cuda_repeats_to_the_bit(method: str) -> None:
    numbers = torch.Generator().manual_seed(0)
    points = as_points(torch.randn(3, 900, 16, generator=numbers), "cosine").to(DEVICE)
    near = find_neighbours(points, 90)
    assert torch.equal(lay_out(points, method, 2, near), lay_out(points, method, 2, near))


@pytest.mark.parametrize(("columns", "k"), [(50, 7), (700, 30), (5000, 30), (8192, 15)])
@pytest.mark.parametrize("whole", [False, True])
def test_the_largest_of_rows_are_those_of_topk(columns: int, k: int, whole: bool) -> None:
    from attention_atlas.layout.fused_rows import best_of_rows

    numbers = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 40, columns, generator=numbers).to(DEVICE)
    scores = scores.round() if whole else scores  # whole numbers: many are equal
    less = torch.rand(2, columns, generator=numbers).to(DEVICE)
    expected = scores - less[:, None]
    expected.diagonal(offset=5, dim1=1, dim2=2).fill_(-torch.inf)
    for found, of in (
        (best_of_rows(scores, k), scores),
        (best_of_rows(scores, k, less, 5), expected),
    ):
        value, column = found
        assert torch.equal(value, of.topk(k, 2).values)
        assert torch.equal(of.gather(2, column), value)
        assert (column.sort(2).values.diff() > 0).all()  # none twice


def test_numbers_below_are_counted_as_in_a_sorted_row() -> None:
    from attention_atlas.layout.fused_rows import count_below

    numbers = torch.Generator().manual_seed(0)
    rows = torch.randn(3, 40, 3000, generator=numbers).to(DEVICE).mul(9).round()
    wanted = rows[..., :45].contiguous()
    expected = torch.searchsorted(rows.sort(2).values, wanted)
    assert torch.equal(count_below(rows, wanted).long(), expected)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("settled", [1.0, 0.2])
def test_looking_in_one_kernel_moves_points_as_plain_sums_do(dims: int, settled: float) -> None:
    from attention_atlas.layout.fused_looks import look_sums

    numbers = torch.Generator().manual_seed(0)
    heads, n, m, keys = 2, 150, 90, 30
    shape = (heads, n, keys)
    seen = torch.rand(shape, generator=numbers) > 0.3
    seen[:, 3] = False  # a query that sees nothing
    looks = Looks(
        torch.randint(m, shape, generator=numbers), torch.randn(shape, generator=numbers), seen,
        seen & (torch.rand(shape, generator=numbers) > 0.2),
    )  # fmt: skip
    gaze = make_gaze(looks, n + m).eager(1.4, settled)
    axes = 3 * torch.randn(dims, heads * (n + m), generator=numbers)
    unit = torch.full((heads * n,), 0.7)
    expected = gaze.sums(axes, unit)
    on_card = make_gaze(Looks(*(of.to(DEVICE) for of in vars(looks).values())), n + m)
    found = look_sums(on_card.eager(1.4, settled), axes.to(DEVICE), unit.to(DEVICE))
    # a point sums at most n + m forces below 4 · 10, each off by a few times 2⁻²⁴
    for ours, plain in zip(found, expected, strict=True):
        assert torch.allclose(ours.cpu(), plain, atol=1e-4)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("width", [5, 64, 128])
def test_like_finds_like_in_two_kernels_as_by_plain_sums(dims: int, width: int) -> None:
    numbers = torch.Generator().manual_seed(dims)
    axes = 3 * torch.randn(dims, 2, 300, generator=numbers)
    vectors = torch.randn(2, 300, width, generator=numbers)
    expected = towards_like(axes, vectors, 3)
    given = axes.to(DEVICE), vectors.to(DEVICE), SIDES[dims], 3
    exact = towards_fused(*given, precision="ieee").cpu()
    # scores are below 3 · STRICT, so float32 is off by 3 · STRICT · width · 2⁻²⁴ at most, and a
    # mean of places by twice that share of the map
    wide = float((axes.amax(2) - axes.amin(2)).max())
    off = 3 * STRICT * (width + 8) * 2.0**-24
    assert torch.allclose(exact, expected, atol=2 * off * wide)
    # TF32 keeps ten bits of each factor: 2 · STRICT · v·m / |v|² is off by 2⁻¹⁰ of it at most,
    # where a mean m is no longer than the longest vector
    length = vectors.norm(dim=2)
    longer = float(length.max() / length.min())
    rough = towards_fused(*given).cpu()
    assert (rough - expected).abs().max() <= 2 * 2 * STRICT * longer * 2.0**-10 * wide
    assert torch.equal(rough, towards_fused(*given).cpu())


@pytest.mark.parametrize("columns", [1, 5, 64, 312, 1024])
def test_ranks_counted_by_pairs_are_those_of_sorted_rows(columns: int) -> None:
    numbers = torch.Generator().manual_seed(0)
    rows = torch.randn(3, 7, columns, generator=numbers).mul(9).round()  # many are equal
    rows[0, 0, columns // 2 :] = torch.inf
    from attention_atlas.layout.fused_rows import row_ranks

    assert torch.equal(row_ranks(rows.to(DEVICE)).cpu(), _ranks(rows))


@of_a_gpu
@pytest.mark.parametrize("count", [128, 300, 20])
def test_the_scale_found_by_a_kernel_is_that_of_plain_sums(count: int) -> None:
    numbers = torch.Generator().manual_seed(0)
    queries = torch.randn(3, count, 16, generator=numbers)
    keys = 4 * torch.randn(3, count, 16, generator=numbers) + queries
    found = best_scale(queries.to(DEVICE), keys.to(DEVICE)).cpu()
    # a correlation is off by a few times 2⁻²⁴; at the top of a parabola c is off by its root
    assert torch.allclose(found, best_scale(queries, keys), rtol=8 * 2.0**-12)


@pytest.mark.parametrize(("n", "m"), [(100, 100), (37, 20)])
def test_every_c_is_scored_by_a_kernel_as_by_plain_sums(n: int, m: int) -> None:
    from attention_atlas.layout.fused_scale import scale_scores

    numbers = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, count, 8, generator=numbers) for count in (n, m))
    b = 2 * b + 0.1
    a2, b2 = a.square().sum(2)[:, :, None], b.square().sum(2)[:, None]
    cross, dot = 2 * a @ b.mT, a @ b.mT + 0.1
    tried = torch.tensor([[0.5, 0.7], [1.0, 2.0], [3.0, 0.2]])
    expected = torch.stack(
        [weighted_correlation(a2 * c2 + b2 / c2 - cross, dot) for c2 in tried[..., None, None] ** 2]
    )
    given = (of.to(DEVICE) for of in (tried, a2, b2, cross, dot))
    # a correlation of sums of n · m numbers, each off by a few times 2⁻²⁴
    assert torch.allclose(scale_scores(*given).cpu(), expected, atol=64 * 2.0**-24)
