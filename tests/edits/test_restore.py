"""Is a model after its edits what it was, bit for bit, and do two threads not meet?"""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import attention_atlas as aa
from attention_atlas.edits.edit import Edit
from tests.edits.stacks import N, edits
from tests.record.test_door import state
from tests.record.test_two_threads import at_once, bert, by_the_name_eager, gpt, llama

IDS = torch.arange(5, 5 + N)[None]
MODELS = {"gpt": gpt(), "bert": bert(), "llama": llama()}
pytestmark = pytest.mark.filterwarnings("ignore")  # what the models themselves warn of


def run(model: Any) -> Tensor:
    with torch.no_grad():
        output: Tensor = model(IDS)[0]
    return output


def bits(model: Any) -> list[Tensor]:
    return [tensor.clone() for tensor in model.state_dict().values()]


@settings(max_examples=40)
@given(st.sampled_from(sorted(MODELS)), st.lists(edits(), min_size=1, max_size=4), st.booleans())
def test_after_any_stack_of_edits_a_model_is_as_it_was(
    name: str, stack: list[Edit], fails: bool
) -> None:
    model = MODELS[name]
    plain, before, weights = run(model), state(model), bits(model)
    try:
        with aa.edit(model, stack):
            run(model)
            if fails:
                raise ZeroDivisionError
    except (ZeroDivisionError, aa.InputError):  # a given pattern may look at a hidden token
        pass
    assert state(model) == before
    assert all(torch.equal(a, b) for a, b in zip(bits(model), weights, strict=True))
    assert torch.equal(run(model), plain)


def outcome(outer: list[Edit], inner: list[Edit] | None = None) -> Tensor:
    """What a model gives with edits; nothing where a given pattern looks at a hidden token."""
    model = MODELS["gpt"]
    try:
        with aa.edit(model, outer), aa.edit(model, inner or []):
            return run(model)
    except aa.InputError:
        return torch.zeros(0)


@settings(max_examples=25)
@given(st.lists(edits(), min_size=2, max_size=4))
def test_edits_are_applied_by_stage_and_then_in_the_order_of_the_list(stack: list[Edit]) -> None:
    """A list is the same list sorted by stage, and the same cut into blocks one in the other."""
    together = outcome(stack)
    assert torch.equal(outcome(sorted(stack, key=lambda edit: edit.stage)), together)
    assert torch.equal(outcome(stack[:1], stack[1:]), together)


def test_the_order_within_a_stage_is_that_of_the_list() -> None:
    """A head ablated and then scaled is ablated; patched last it is patched: worked out by hand."""
    model, other = gpt(), {"input_ids": IDS.flip(1)}
    patch, zero = aa.patch("L1H2", from_=other), aa.ablate("L1H2")

    def with_(*stack: Any) -> Tensor:
        with aa.edit(model, stack):
            return run(model)

    assert torch.equal(with_(patch, zero), with_(zero))
    assert torch.equal(with_(zero, patch), with_(patch))
    assert not torch.equal(with_(zero), with_(patch))
    # The pattern is set after the mask, wherever it stands in the list.
    even, hidden = aa.pattern("L1H2", "self"), aa.mask("L1H2", token=0)
    assert torch.equal(with_(even, hidden), with_(hidden, even))


def test_mode_gradients_and_random_numbers_are_the_callers() -> None:
    model = gpt().train()
    torch.manual_seed(3)
    drawn = torch.rand(2)
    torch.manual_seed(3)
    with aa.edit(model, aa.scale("L1H2", 0.0)):
        assert model.training and torch.is_grad_enabled()
        assert torch.equal(torch.rand(2), drawn)
        model.eval()(IDS).logits.sum().backward()
    part = model.transformer.h[1].attn.c_proj.weight.grad[16:24]
    assert not part.any(), "what a silenced head would give has no gradient"


@pytest.mark.parametrize("second", [bert, by_the_name_eager, None])
def test_two_threads_with_different_edits_do_not_meet(second: Any) -> None:
    """Two models, one of them found under the name "eager"; and one model in both threads."""
    first = gpt()
    models = [first, first if second is None else second()]
    asked = [[aa.ablate("L1H2")], [aa.scale("L0H1", -2.0), aa.pattern("L1H0", "even")]]

    def work(model: Any, stack: Any) -> Tensor:
        with aa.edit(model, stack):
            return run(model)

    alone = [work(model, stack) for model, stack in zip(models, asked, strict=True)]
    found = at_once(
        *(lambda model=model, stack=stack: work(model, stack)
          for model, stack in zip(models, asked, strict=True))
    )  # fmt: skip
    for results, lone in zip(found, alone, strict=True):
        assert all(torch.equal(result, lone) for result in results)


def test_an_edited_model_is_not_captured_by_mistake() -> None:
    model = gpt()
    with (
        aa.edit(model, aa.ablate("L1H2")),
        pytest.raises(aa.ModelError, match="is being edited; capture or check it outside"),
    ):
        aa.capture((model, None), [{"input_ids": IDS}], progress=False)
