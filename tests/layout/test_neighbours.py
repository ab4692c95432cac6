"""Are the partners that are found the best ones?"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_atlas.layout.neighbours import GROUP, largest_by_groups


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, GROUP - 1), st.integers(0, 2**31))
def test_the_largest_found_by_groups_are_the_largest(
    k: int, groups: int, rest: int, seed: int
) -> None:
    dice = torch.Generator().manual_seed(seed)
    count = groups * GROUP + rest
    values = torch.randn(2, 3, count, generator=dice)
    values[0, 0] = values[0, 0].round()  # many equal ones
    k = min(k, count)
    best, place = largest_by_groups(values, k)
    expected = values.sort(dim=-1, descending=True).values[..., :k]
    assert torch.equal(best, expected)
    assert torch.equal(values.gather(-1, place), expected)
    assert all(len(set(row)) == k for row in place.flatten(0, 1).tolist())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_gpu_finds_the_same_partners() -> None:
    from attention_atlas.layout.neighbours import best_partners

    points = torch.randn(3, 2500, 16, generator=torch.Generator().manual_seed(0))
    index, score = best_partners(points, points, 15, itself=False)
    on_gpu, score_there = best_partners(points.cuda(), points.cuda(), 15, itself=False)
    assert score_there.cpu() == pytest.approx(score, abs=1e-4)
    assert (on_gpu.cpu() == index).float().mean() > 0.99
