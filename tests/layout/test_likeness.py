"""Is a point drawn to where points like it stand?"""

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_atlas.layout.likeness import (
    AROUND,
    REACH,
    SHIFTS,
    SIDES,
    STRICT,
    attend_fused,
    attend_plain,
    towards_like,
)


def some(heads: int, points: int, dims: int, width: int = 5) -> tuple[Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(dims)
    axes = torch.randn(dims, heads, points, generator=numbers)
    vectors = torch.randn(heads, points, width, generator=numbers)
    return axes, vectors - vectors.mean(1, keepdim=True)


@pytest.mark.parametrize("dims", [2, 3])
def test_it_is_the_sum_written_out(dims: int) -> None:
    axes, vectors = some(2, 30, dims)
    moved = towards_like(axes, vectors, 3).numpy()
    side = SIDES[dims]
    for head in range(2):
        places, of = axes[:, head].double().numpy(), vectors[head].double().numpy()
        low, high = places.min(1), places.max(1)
        step = (high - low) / (side - 2)
        nodes = (
            np.array(list(np.ndindex(*[side] * dims))) - 1 + (0.5 + 3 * np.array(SHIFTS[:dims])) % 1
        )
        nodes = low + step * nodes
        apart = ((places.T[:, None] - nodes) / step.mean()) ** 2  # (points, nodes, dims)
        heard = np.exp(-apart.sum(2) / (2 * AROUND**2))
        means = heard.T @ of / np.maximum(heard.sum(0), 1e-3)[:, None]
        unlike = ((of[:, None] - means) ** 2).sum(2) / (of**2).sum(1)[:, None]
        score = -STRICT * unlike - apart.sum(2) / (2 * REACH**2)
        chosen = np.exp(score - score.max(1, keepdims=True))
        chosen /= chosen.sum(1, keepdims=True)
        wanted = (chosen @ nodes).T - places
        np.testing.assert_allclose(moved[:, head], wanted, atol=1e-3)


def test_a_point_among_strangers_moves_to_its_own_kind() -> None:
    numbers = torch.Generator().manual_seed(0)
    kind = torch.arange(200) % 2
    side = 2 * kind - 1  # one kind stands left, the other right
    axes = torch.stack([side * 1.0, torch.zeros(200)]) + 0.4 * torch.randn(
        2, 200, generator=numbers
    )
    axes[0, 0] = 1.0  # the first is of the left kind and stands right
    vectors = side[:, None] * torch.ones(200, 3)
    places = axes[:, None]
    for turn in range(20):
        places = places + 0.5 * towards_like(places, vectors[None], turn)
    assert places[0, 0, 0] < 0
    assert (places[0, 0, 1:].sign() == side[1:]).all()


def test_heads_do_not_touch_each_other() -> None:
    axes, vectors = some(3, 40, 2)
    together = towards_like(axes, vectors)
    alone = [towards_like(axes[:, head, None], vectors[head, None]) for head in range(3)]
    assert torch.allclose(together, torch.cat(alone, 1), atol=1e-5)


def test_equal_points_stay_where_they_are() -> None:
    moved = towards_like(torch.zeros(2, 1, 9), torch.zeros(1, 9, 4))
    assert moved.abs().max() < 1e-6


def test_one_kernel_gives_what_the_products_give() -> None:
    numbers = torch.Generator().manual_seed(0)
    asked, offered = (torch.randn(2, size, 13, generator=numbers) for size in (50, 40))
    values = torch.randn(2, 40, 3, generator=numbers)
    # a weight is off by its logit's error, 13 products of size 4 at most: 13 · 16 · 2⁻²³
    assert torch.allclose(
        attend_fused(asked, offered, values), attend_plain(asked, offered, values), atol=1e-4
    )
