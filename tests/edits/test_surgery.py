"""Is each edit the same as surgery by hand, on models of six shapes?

The surgeon knows the names of the modules and works with plain hooks of torch: on what the output
projection is given, on what the value projection makes, and with a softmax that is rebuilt by hand.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_atlas as aa
from tests.edits.shapes import (
    HEADS,
    SHAPES,
    WIDTH,
    Shape,
    assert_close,
    first,
    keeping,
    logits,
    made_by,
    projection_given,
    weights_and_values,
)

HEAD = 2
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # what the models themselves warn of
    pytest.mark.parametrize("name", SHAPES),
]
Case = tuple[Shape, Any, dict[str, Tensor], Tensor]


@pytest.fixture
def case(name: str) -> Case:
    """A shape, its model under eager attention, a batch of two, and its plain logits."""
    shape = SHAPES[name]
    model, tensors = shape.build("eager"), shape.tensors()
    return shape, model, tensors, logits(model, tensors)


def edited(case: Case, *edits: Any) -> Tensor:
    _, model, tensors, _ = case
    with aa.edit(model, edits, inputs=first(tensors)):
        return logits(model, tensors)


def operated(case: Case, change: Callable[[Tensor], Tensor]) -> Tensor:
    """The logits where what the output projection is given, (B, N, H, D), is changed."""
    shape, model, tensors, _ = case
    with projection_given(shape, model, change):
        return logits(model, tensors)


def moving(weights: Tensor, values: Tensor, head: int = HEAD) -> Callable[[Tensor], Tensor]:
    """A change of what a head moves: other weights (B, N, M) times its values."""

    def change(heads: Tensor) -> Tensor:
        heads[:, :, head] = weights @ values[:, head]
        return heads

    return change


def setting(head: Any, new: Any) -> Callable[[Tensor], Tensor]:
    def change(heads: Tensor) -> Tensor:
        heads[:, :, head] = new(heads[:, :, head]) if callable(new) else new
        return heads

    return change


def test_ablation_by_zero_is_a_slice_of_zeros(case: Case) -> None:
    shape, _, _, plain = case
    mine = edited(case, aa.ablate(f"{shape.layer}H{HEAD}"))
    assert_close(mine, operated(case, setting(HEAD, 0.0)), plain)


def test_a_layer_ablated_is_its_attention_zeroed(case: Case) -> None:
    shape, _, _, plain = case
    mine = edited(case, aa.ablate(shape.layer))
    assert_close(mine, operated(case, setting(slice(None), 0.0)), plain)


def test_ablation_by_mean_is_the_mean_over_the_tokens_of_other_inputs(case: Case) -> None:
    shape, model, _, plain = case
    others = [first(shape.tensors(seed)) for seed in (5, 6)]
    seen: list[Tensor] = []
    for other in others:
        with projection_given(shape, model, keeping(seen)):
            logits(model, other)
    mean = torch.cat([heads[0, :, HEAD] for heads in seen]).mean(0)
    mine = edited(case, aa.ablate(f"{shape.layer}H{HEAD}", by="mean", from_=others))
    assert_close(mine, operated(case, setting(HEAD, mean)), plain)


def test_ablation_by_resample_from_one_input_takes_its_tokens_one_by_one(case: Case) -> None:
    shape, model, _, plain = case
    other = first(shape.tensors(5))
    seen: list[Tensor] = []
    with projection_given(shape, model, keeping(seen)):
        logits(model, other)
    mine = edited(case, aa.ablate(f"{shape.layer}H{HEAD}", by="resample", from_=[other], seed=3))
    assert_close(mine, operated(case, setting(HEAD, seen[0][:, :, HEAD])), plain)
    patched = edited(case, aa.patch(f"{shape.layer}H{HEAD}", "output", from_=other))
    assert torch.equal(mine, patched)


def test_a_scale_for_one_input_and_some_positions_is_a_slice_multiplied(case: Case) -> None:
    shape, _, _, plain = case

    def change(heads: Tensor) -> Tensor:
        heads[1, [0, 2], HEAD] *= -3.0
        return heads

    mine = edited(case, aa.scale(f"{shape.layer}H{HEAD}", -3.0, inputs=1, positions=[0, 2]))
    assert_close(mine, operated(case, change), plain)
    assert torch.equal(mine[0], plain[0])


def test_a_mask_is_the_softmax_over_the_other_keys(case: Case) -> None:
    """Token 1 is hidden from all, and token 0 from query 3; rows with no other key move nothing."""
    shape, model, tensors, plain = case
    weights, values = weights_and_values(shape, model, tensors)
    left = weights[:, HEAD].clone()
    left[..., 1] = 0
    left[:, 3, 0] = 0
    left = left / left.sum(-1, keepdim=True).clamp_min(1e-30)
    head = f"{shape.layer}H{HEAD}"
    mine = edited(case, aa.mask(head, token=1), aa.mask(head, edges=[(3, 0)]))
    assert_close(mine, operated(case, moving(left, values)), plain)


def test_rows_that_lose_every_key_do_as_their_policy_says(case: Case) -> None:
    shape, model, tensors, plain = case
    weights, _ = weights_and_values(shape, model, tensors)
    head, everything = f"{shape.layer}H{HEAD}", range(weights.shape[-1])
    zero = edited(case, aa.mask(head, tokens=everything))
    assert_close(zero, operated(case, setting(HEAD, 0.0)), plain)
    kept = edited(case, aa.mask(head, tokens=everything, empty="keep"))
    assert float((kept - plain).abs().max()) <= 1e-12 * float(plain.abs().max())
    with pytest.raises(aa.InputError, match="no key to look at"):
        edited(case, aa.mask(head, tokens=everything, empty="refuse"))


def test_an_even_pattern_is_the_mean_of_the_values_that_are_seen(case: Case) -> None:
    shape, model, tensors, plain = case
    weights, values = weights_and_values(shape, model, tensors)
    seen = (weights[:, HEAD] > 0).double()
    mine = edited(case, aa.pattern(f"{shape.layer}H{HEAD}", "even"))
    even = seen / seen.sum(-1, keepdim=True)
    assert_close(mine, operated(case, moving(even, values)), plain)


@pytest.mark.parametrize("kind", ["previous", "self", "window"])
def test_patterns_along_a_text_are_those_written_by_hand(case: Case, kind: str) -> None:
    shape, model, tensors, plain = case
    head = f"{shape.layer}H{HEAD}"
    if shape.layer.startswith("cross"):
        with pytest.raises(aa.InputError, match="looks at another sequence"):
            edited(case, aa.pattern(head, kind))
        return
    _, values = weights_and_values(shape, model, tensors)
    n = values.shape[2]
    rows = torch.zeros(n, n, dtype=torch.float64)
    for query in range(n):
        keys = {
            "self": [query],
            "previous": [max(query - 1, 0)],
            "window": sorted({0, *range(max(query - 1, 0), query + 1)}),
        }[kind]
        rows[query, keys] = 1 / len(keys)
    options = {"sink": 1, "recent": 2} if kind == "window" else {}
    mine = edited(case, aa.pattern(head, kind, **options))
    expected = operated(case, moving(rows.expand(2, n, n), values))
    assert_close(mine, expected, plain)
    assert torch.equal(mine, edited(case, aa.pattern(head, rows.tolist())))


def test_a_value_neuron_that_is_set_is_a_column_of_the_value_projection(case: Case) -> None:
    shape, model, tensors, plain = case
    group = HEAD * shape.groups // HEADS
    column = shape.first + group * WIDTH + 5

    def change(made: Tensor) -> Tensor:
        made[:, 2, column] = 1.5
        return made

    sharing = [f"{shape.layer}H{head}" for head in range(HEADS)
               if head * shape.groups // HEADS == group]  # fmt: skip
    mine = edited(case, aa.neuron(sharing, "value", 5, 1.5, positions=2))
    with made_by(shape.value, model, change):
        assert_close(mine, logits(model, tensors), plain)
    flagged = aa.neuron(f"{shape.layer}H{HEAD}", "value", 5, 1.5, positions=2, shared=True)
    assert torch.equal(mine, edited(case, flagged))
    if shape.groups < HEADS:
        with pytest.raises(aa.InputError, match=r"L1H2 shares its value with decoder.L1H3"):
            edited(case, aa.neuron(f"{shape.layer}H{HEAD}", "value", 5, 1.5))


def test_a_query_neuron_doubled_is_a_column_of_the_query_projection_doubled(case: Case) -> None:
    shape, model, tensors, plain = case
    if not shape.query:
        pytest.skip("its queries are turned, scaled or fused after they are made")
    column = HEAD * WIDTH + 3

    def change(made: Tensor) -> Tensor:
        made[..., column] *= 2
        return made

    mine = edited(case, aa.neuron(f"{shape.layer}H{HEAD}", "query", 3, scale=2.0))
    with made_by(shape.query, model, change):
        assert_close(mine, logits(model, tensors), plain)


@pytest.mark.parametrize("what", ["pattern", "value"])
def test_a_patch_is_weights_of_here_and_there_times_values_of_there_and_here(
    case: Case, what: str
) -> None:
    shape, model, tensors, plain = case
    other = shape.tensors(5)
    own, values = weights_and_values(shape, model, tensors)
    theirs, other_values = weights_and_values(shape, model, first(other))
    heads = [head for head in range(HEADS)
             if head * shape.groups // HEADS == HEAD * shape.groups // HEADS]  # fmt: skip
    named = [f"{shape.layer}H{head}" for head in heads]
    mine = edited(case, aa.patch(named, what, from_=first(other)))

    def change(moved: Tensor) -> Tensor:
        for head in heads:
            weights = theirs[:, head] if what == "pattern" else own[:, head]
            moved[:, :, head] = weights @ (values if what == "pattern" else other_values)[:, head]
        return moved

    assert_close(mine, operated(case, change), plain)


def test_queries_and_keys_of_another_input_give_its_pattern(case: Case) -> None:
    shape = case[0]
    other = first(shape.tensors(5))
    both = [aa.patch(shape.layer, what, from_=other) for what in ("query", "key")]
    mine = edited(case, *both)
    assert_close(mine, edited(case, aa.patch(shape.layer, "pattern", from_=other)), case[3])
