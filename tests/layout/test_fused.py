"""Are the sums of the CUDA kernels those of plain torch? Runs where there is a CUDA device."""

import pytest
import torch

from attention_atlas.layout.affinity import affinities
from attention_atlas.layout.attraction import attraction, tie
from attention_atlas.layout.device import has_triton
from attention_atlas.layout.graph import symmetric
from attention_atlas.layout.methods import METHODS, lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.repulsion import pair_repulsion

pytestmark = pytest.mark.skipif(
    not (torch.cuda.is_available() and has_triton()), reason="needs a CUDA device with Triton"
)


@pytest.mark.parametrize("dims", [2, 3])
def test_fused_forces_are_the_plain_ones(dims: int) -> None:
    from attention_atlas.layout import fused

    numbers = torch.Generator().manual_seed(0)
    points = as_points(torch.randn(2, 700, 16, generator=numbers), "cosine").cuda()
    places = 5 * torch.randn(2, 700, dims, generator=numbers).cuda()
    near = find_neighbours(points, 90)
    ties = tie(symmetric(near.index, affinities(near, 30.0), "mean"), 2)
    flat = places.view(-1, dims)
    assert torch.allclose(fused.attraction(flat, ties), attraction(flat, ties), atol=1e-5)
    for ours, plain in zip(fused.repulsion(places), pair_repulsion(places.double()), strict=True):
        assert torch.allclose(ours.double(), plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_on_cuda_repeats_to_the_bit(method: str) -> None:
    numbers = torch.Generator().manual_seed(0)
    points = as_points(torch.randn(3, 900, 16, generator=numbers), "cosine").cuda()
    near = find_neighbours(points, 90)
    assert torch.equal(lay_out(points, method, 2, near), lay_out(points, method, 2, near))
