"""Can a hook at the door change attention, and is the change the one that was asked for?

What is expected comes from surgery on the weights of the model, or from hooks on its other modules.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import ModelError
from attention_atlas.record.prove.receipt import try_ways
from attention_atlas.record.watch.door import Door, Passing
from attention_atlas.record.watch.location import Site
from attention_atlas.record.watch.ways import watching
from tests.record.test_two_threads import bert, by_the_name_eager, gpt, llama
from tests.record.zoo import ZOO

IDS = torch.tensor([[5, 17, 3, 42, 8, 61, 30]])
HEADS, WIDTH, HEAD, LAYER = 4, 8, 2, 1
OWN = slice(WIDTH * HEAD, WIDTH * (HEAD + 1))  # a head's part of all heads side by side
Change = Callable[[Passing], None]


@dataclass
class Changing:
    """A hook that changes some layers."""

    on_before: Change | None = None
    on_after: Change | None = None
    needs_weights: bool = False
    layers: tuple[int, ...] = (LAYER,)

    def before(self, passing: Passing) -> None:
        self._change(passing, self.on_before)

    def after(self, passing: Passing) -> None:
        self._change(passing, self.on_after)

    def _change(self, passing: Passing, change: Change | None) -> None:
        place = passing.surroundings.place
        if change is not None and place is not None and place[1] in self.layers:
            change(passing)


class Listing:
    """A hook that notes where it is called."""

    needs_weights = False

    def __init__(self) -> None:
        self.sites: list[Site] = []

    def before(self, passing: Passing) -> None:
        self.sites.append(passing.site)

    def after(self, passing: Passing) -> None: ...


def plainly(model: Any, **given: Any) -> Tensor:
    with torch.no_grad():
        output: Tensor = model(input_ids=IDS, **given)[0]
    return output


def through_door(model: Any, hook: Any, **options: Any) -> Tensor:
    with Door(model, [hook], **options).open():
        output: Tensor = model(input_ids=IDS)[0]
    return output


@contextmanager
def surgery(weight: Tensor, part: Any, factor: float) -> Iterator[None]:
    """A part of a weight times a factor, for a while."""
    before = weight.detach().clone()
    with torch.no_grad():
        weight[part] *= factor
    yield
    with torch.no_grad():
        weight.copy_(before)


@pytest.mark.parametrize("fast", [True, False])
def test_a_head_whose_output_is_zeroed_is_a_head_cut_from_the_output_projection(fast: bool) -> None:
    model = gpt()

    def zero(passing: Passing) -> None:
        passing.output = passing.output.clone()
        passing.output[:, :, HEAD] = 0

    plain = plainly(model)
    changed = through_door(model, Changing(on_after=zero), fast=fast)
    model.set_attn_implementation("sdpa" if fast else "eager")
    with surgery(model.transformer.h[LAYER].attn.c_proj.weight, OWN, 0.0):
        assert torch.equal(changed, plainly(model))
    assert (changed - plain).abs().max() > 0.01


def test_queries_scaled_before_attention_are_rows_of_the_query_projection_scaled() -> None:
    """By two, which rounds nothing; Llama's heads share keys in groups and are turned by place."""
    model = llama()

    def double(passing: Passing) -> None:
        scale = torch.ones(HEADS)
        scale[HEAD] = 2
        passing.query = passing.query * scale[:, None, None]

    changed = through_door(model, Changing(on_before=double))
    model.set_attn_implementation("eager")
    plain = plainly(model)
    with surgery(model.layers[LAYER].self_attn.q_proj.weight, OWN, 2.0):
        assert torch.equal(changed, plainly(model))
    assert not torch.equal(changed, plain)


def test_from_an_even_pattern_the_door_computes_the_mean_of_the_values() -> None:
    model = bert().double()
    attention = model.encoder.layer[LAYER].attention

    def even(passing: Passing) -> None:
        assert passing.weights is not None
        passing.weights = passing.weights.clone()
        passing.weights[:, HEAD] = 1 / passing.weights.shape[-1]

    changed = through_door(model, Changing(on_after=even, needs_weights=True), fast=True)
    values: list[Tensor] = []

    def mean_of_values(_module: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        moved = args[0].clone()
        moved[..., OWN] = values[0][..., OWN].mean(1, keepdim=True)
        return (moved, *args[1:])

    hooks = [
        attention.self.value.register_forward_hook(lambda *told: values.append(told[2])),
        attention.output.dense.register_forward_pre_hook(mean_of_values),
    ]
    expected = plainly(model)
    for hook in hooks:
        hook.remove()
    # The same sums in another order: fewer than 4096 additions of float64 on the way.
    bound = 4096 * torch.finfo(torch.float64).eps * float(expected.abs().max())
    assert (changed - expected).abs().max() <= bound
    assert (changed - plainly(model)).abs().max() > 1e6 * bound


@pytest.mark.parametrize("build", [gpt, bert, llama])
def test_equal_weights_put_in_place_of_the_models_own_change_no_bit(
    build: Callable[[], Any],
) -> None:
    model = build()

    def copy(passing: Passing) -> None:
        assert passing.weights is not None
        passing.weights = passing.weights.clone()

    changed = through_door(model, Changing(on_after=copy, needs_weights=True))
    model.set_attn_implementation("eager")
    assert torch.equal(changed, plainly(model))


def test_a_key_hidden_by_a_hook_is_a_key_hidden_by_the_attention_mask() -> None:
    model, key = bert(), 3

    def hide(passing: Passing) -> None:
        queries, keys = passing.query.shape[2], passing.key.shape[2]
        lowest = torch.finfo(passing.query.dtype).min
        mask = torch.zeros(1, 1, queries, keys) if passing.mask is None else passing.mask.clone()
        mask[..., key] = lowest
        passing.mask = mask

    changed = through_door(model, Changing(hide, needs_weights=True, layers=(0, 1)))
    model.set_attn_implementation("eager")
    seen = torch.ones_like(IDS)
    seen[0, key] = 0
    assert torch.equal(changed, plainly(model, attention_mask=seen))


def test_a_recorder_behind_an_edit_records_what_the_edit_made() -> None:
    model = gpt()

    def double(passing: Passing) -> None:
        passing.query = passing.query * 2

    tensors = {"input_ids": IDS}
    plain = watching(model, "named", detail=True)(tensors)
    edited = watching(model, "named", detail=True, hooks=[Changing(on_before=double)])(tensors)
    assert torch.equal(edited[0].query, plain[0].query)
    assert torch.equal(edited[LAYER].query, 2 * plain[LAYER].query)
    weights = edited[LAYER].weights
    assert weights is not None
    # Softmax of logits that differ by their rounding: twice eps times the largest logit.
    logits = edited[LAYER].logits()
    bound = 2 * torch.finfo(torch.float32).eps * max(1.0, float(logits.tril().abs().max()))
    assert (weights - torch.softmax(logits, -1)).abs().max() <= bound


def test_each_visit_of_a_shared_module_is_a_site_of_its_own() -> None:
    albert, listing = ZOO["ALBERT"].build(), Listing()
    through_door(albert, listing)
    (module,) = {site.module for site in listing.sites}
    assert listing.sites == [Site(module, visit, 0) for visit in range(3)]


def test_steps_count_the_passes_of_a_generation() -> None:
    model, listing = gpt(), Listing()
    with Door(model, [listing]).open():
        model.generate(
            input_ids=IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=3, do_sample=False,
            pad_token_id=0, eos_token_id=None,
        )  # fmt: skip
    assert [(site.visit, site.step) for site in listing.sites] == [
        (0, step) for step in range(3) for _layer in range(2)
    ]


@pytest.mark.parametrize("build", [gpt, by_the_name_eager])
@pytest.mark.filterwarnings("ignore")  # what the models themselves warn of
def test_a_model_is_as_it_was_even_after_a_hook_that_failed(build: Callable[[], Any]) -> None:
    model = build()
    model.base_model.train()
    before, failed = state(model), []

    def fail(_passing: Passing) -> None:
        raise ZeroDivisionError

    for way in ("named", "eager"):
        try:
            through_door(model, Changing(fail), way=way)
        except ZeroDivisionError:
            failed.append(way)
    assert "eager" in failed
    assert state(model) == before
    other = Thread(target=through_door, args=(bert(), Listing()))
    other.start()
    other.join(60)
    assert not other.is_alive(), "the door was left locked"


def state(model: Any) -> Any:
    """All that a pass may change of a model and of transformers."""
    modules = list(model.modules())
    return (
        model.config._attn_implementation,
        [module.training for module in modules],
        [(len(module._forward_hooks), len(module._forward_pre_hooks)) for module in modules],
        ALL_ATTENTION_FUNCTIONS.get("eager"),
        torch.is_grad_enabled(),
    )


# The ways that are not taken ----------------------------------------------------------------------


def tried(model: Any) -> Any:
    items = ZOO["GPT-2"].feed(torch.Generator().manual_seed(1))
    return try_ways(Loaded(model, None, "a model", None), items)


def test_a_receipt_says_why_other_ways_were_not_taken() -> None:
    assert tried(ZOO["GPT-2"].build()).receipt.not_taken == ()
    receipt = tried(ZOO["GPT-J"].build()).receipt
    assert receipt.how == "trace"
    assert [reason.partition(":")[0] for reason in receipt.not_taken] == ["named", "eager"]
    assert all("no attention seen" in reason for reason in receipt.not_taken)


@pytest.mark.parametrize("problem", [MemoryError, torch.OutOfMemoryError])
def test_lack_of_memory_is_no_reason_for_another_way(problem: type[Exception]) -> None:
    model = gpt()

    def fail(*_told: Any) -> None:
        raise problem("no room")

    model.transformer.h[1].register_forward_hook(fail)
    with pytest.raises(problem, match="no room"):
        tried(model)


def test_a_change_from_outside_is_an_error_and_not_a_reason_for_another_way() -> None:
    model = gpt()

    def interfere(*_told: Any) -> None:
        model.config._attn_implementation_internal = "eager"

    model.transformer.h[0].register_forward_hook(interfere)
    with pytest.raises(ModelError, match="was changed while it was read"):
        tried(model)


def test_what_a_model_raises_is_a_reason_for_another_way() -> None:
    model = ZOO["GPT-2"].build()

    def refuse(*_told: Any) -> None:
        if model.config._attn_implementation != "eager":
            raise ValueError("eager or nothing")

    model.h[0].register_forward_hook(refuse)
    receipt = tried(model).receipt
    assert receipt.how == "eager" and receipt.exact
    assert receipt.not_taken == ("named: ValueError: eager or nothing",)
