"""Does a world that starts at its first edited layer give what a whole edited pass gives?

The other side is `with aa.edit` over a whole pass, which `tests/edits` compares with surgery.
"""

import re
from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import attention_atlas as aa
from attention_atlas.lab.replay import Replay
from attention_atlas.models.load import load
from tests.edits.shapes import BASE, SHAPES, Shape, assert_close, first, logits, text
from tests.edits.stacks import edits

ALBERT = Shape(
    lambda: hf.AlbertForMaskedLM(hf.AlbertConfig(**BASE, embedding_size=16)),
    text, "L1", "attentions", "", "",
)  # fmt: skip
ALL = SHAPES | {"ALBERT": ALBERT}
RESTARTED = [name for name in ALL if name != "ALBERT"]
pytestmark = pytest.mark.filterwarnings("ignore")  # what the models themselves warn of


def build(name: str) -> tuple[Shape, Any, dict[str, Tensor]]:
    shape = ALL[name]
    return shape, shape.build(), shape.tensors()


def worlds(shape: Shape) -> list[list[Any]]:
    """Edits of several stages, of one input and of all, and a world without any."""
    other, head = first(shape.tensors(5)), f"{shape.layer}H2"
    return [
        [],
        [aa.ablate(head)],
        [aa.scale(f"{shape.layer}H1", -2.0, inputs=1), aa.mask(head, token=1)],
        [aa.ablate(head, by="resample", from_=[other, first(shape.tensors(6))], seed=3)],
        [aa.neuron(shape.layer, "value", 3, 1.0), aa.patch(head, "output", from_=other)],
    ]  # fmt: skip


def whole(model: Any, tensors: dict[str, Tensor], world: list[Any]) -> Tensor:
    with aa.edit(model, world, inputs=first(tensors)):
        return logits(model, tensors)


@pytest.mark.parametrize("name", ALL)
def test_a_single_world_is_a_whole_edited_pass_to_the_bit(name: str) -> None:
    shape, model, tensors = build(name)
    replay = Replay(load(model), tensors)
    assert torch.equal(replay.plain["logits"], logits(model, tensors))
    for world in worlds(shape):
        (mine,) = replay.run([world])
        assert torch.equal(mine["logits"], whole(model, tensors, world))


@pytest.mark.parametrize("name", ALL)
def test_worlds_in_one_batch_are_whole_edited_passes(name: str) -> None:
    """In float64, to what models compute in float32 whatever they are given (see shapes)."""
    shape, model, tensors = build(name)
    plain = logits(model, tensors)
    asked = worlds(shape)
    none, *edited = Replay(load(model), tensors).run(asked)
    assert float((none["logits"] - plain).abs().max()) <= 1e-6 * float(plain.abs().max())
    for world, mine in zip(asked[1:], edited, strict=True):
        assert_close(mine["logits"], whole(model, tensors, world), plain)


@pytest.mark.parametrize("name", RESTARTED)
def test_blocks_before_the_edit_do_not_run_again(name: str) -> None:
    shape, model, tensors = build(name)
    replay = Replay(load(model), tensors)
    assert replay.restarts
    runs: list[str] = []
    for path, module in model.named_modules():
        module.register_forward_hook(lambda *_given, path=path: runs.append(path))
    replay.run([[aa.ablate(f"{shape.layer}H2")], [aa.ablate(f"{shape.layer}H0")]])
    assert shape.projection in runs
    assert shape.projection.replace(".1.", ".0.", 1) not in runs
    assert not [path for path in runs if re.search(r"encoder\.(block|layers)\.\d+\.", path)]


def test_layers_that_share_their_module_run_whole() -> None:
    _, model, tensors = build("ALBERT")
    replay = Replay(load(model), tensors)
    assert not replay.restarts and replay.together


def test_edits_of_two_layers_start_at_the_first() -> None:
    _, model, tensors = build("GPT-2")
    replay = Replay(load(model), tensors)
    assert replay.start([aa.ablate("L1H0")]) == 1
    assert replay.start([aa.ablate("L1H0"), aa.ablate("L0H0")]) == 0
    assert replay.start([]) == 2
    both, one = replay.run([[aa.ablate(["L0H1", "L1H0"])], [aa.ablate("L1H0")]])
    plain = logits(model, tensors)
    assert_close(both["logits"], whole(model, tensors, [aa.ablate(["L0H1", "L1H0"])]), plain)
    assert_close(one["logits"], whole(model, tensors, [aa.ablate("L1H0")]), plain)


def test_a_world_that_names_a_missing_head_is_one_sentence() -> None:
    _, model, tensors = build("GPT-2")
    with pytest.raises(aa.PickError, match="there is no head L7H0"):
        Replay(load(model), tensors).run([[aa.ablate("L7H0")]])


def test_a_model_is_as_before_after_worlds_also_after_an_error() -> None:
    _, model, tensors = build("GPT-2")
    before = {path: dict(module.__dict__) for path, module in model.named_modules()}
    replay = Replay(load(model), tensors)
    replay.run([[aa.ablate("L1H0")]])
    with pytest.raises(aa.InputError):
        replay.run([[aa.mask("L1H0", tokens=range(7), empty="refuse")]])
    for path, module in model.named_modules():
        assert "forward" not in module.__dict__
        assert not module._forward_hooks and not module._forward_pre_hooks
        assert set(module.__dict__) == set(before[path])


GPT = ALL["GPT-2"].build()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(edits(), max_size=2), min_size=1, max_size=3))
def test_random_worlds_are_whole_edited_passes(asked: list[list[Any]]) -> None:
    tensors = ALL["GPT-2"].tensors()
    for world, mine in zip(asked, Replay(load(GPT), tensors).run(asked), strict=True):
        expected = whole(GPT, tensors, world)
        bound = 1e-6 * float(expected.abs().max())
        assert float((mine["logits"] - expected).abs().max()) <= bound
