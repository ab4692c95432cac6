"""Is an edit data: frozen, hashable, JSON both ways, and refused in one sentence if it is wrong?"""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from hypothesis import given

import attention_atlas as aa
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.table import EDITS, from_json
from tests.edits.shapes import split
from tests.edits.stacks import edits
from tests.record.test_two_threads import gpt, llama
from tests.record.zoo import ZOO

IDS = torch.tensor([[5, 17, 3, 42, 8, 61, 30]])


@given(edits())
def test_an_edit_is_json_both_ways_and_hashable(edit: Edit) -> None:
    text = json.dumps(edit.to_json())
    again = from_json(json.loads(text))
    assert again == edit and hash(again) == hash(edit)
    assert edit.kind in EDITS
    with pytest.raises(FrozenInstanceError):
        edit.heads = ()  # type: ignore[misc]


def test_tensors_of_a_reference_are_written_in_full() -> None:
    edit = aa.patch("L0H0", from_={"input_ids": IDS})
    assert edit.to_json()["from"] == [{"input_ids": IDS.tolist()}]


SENTENCES: dict[str, tuple[Any, str]] = {
    "no such head": (lambda: [aa.ablate("L7H0")], "there is no head L7H0; decoder has layers 0 to"),
    "no head's name": (lambda: [aa.ablate("5.1")], "no head is named '5.1'"),
    "no such tower": (lambda: [aa.scale("cross.L0H0", 2)], "its towers are: decoder"),
    "no heads": (lambda: [aa.ablate([])], "an edit of no head"),
    "no such ablation": (lambda: [aa.ablate("L0H0", by="magic")], "zero, mean, resample"),
    "no reference": (lambda: [aa.ablate("L0H0", by="mean")], "takes its values from other inputs"),
    "not finite": (lambda: [aa.scale("L0H0", float("nan"))], "give a finite number"),
    "sum": (
        lambda: [aa.pattern("L0H0", [[0.5, 0.4], [0.5, 0.5]])],
        "row 0 of the pattern sums to 0.9; the weights of a row are not negative and sum to one",
    ),
    "negative": (lambda: [aa.pattern("L0H0", [[1.5, -0.5]])], "not negative"),
    "size": (
        lambda: [aa.pattern("L0H0", [[1.0, 0.0], [0.5, 0.5]])],
        "the pattern is 2 × 2 and the input has 7 queries",
    ),
    "future": (
        lambda: [aa.pattern("L0H0", torch.eye(7).flip(0).tolist())],
        "row 0 of the pattern looks at token 6, which the model or a mask hides",
    ),
    "no such pattern": (lambda: [aa.pattern("L0H0", "odd")], "no pattern is called 'odd'"),
    "length": (
        lambda: [aa.patch("L0H0", from_={"input_ids": IDS[:, :4]})],
        "this input has 7 tokens and the one that decoder.L0H0 is patched from has 4; say which "
        "correspond",
    ),
    "alignment": (
        lambda: [aa.patch("L0H0", from_={"input_ids": IDS[:, :4]}, align=[(0, 6)])],
        "align names token 6 .* which has 4",
    ),
    "mask of nothing": (lambda: [aa.mask("L0H0")], "a mask of nothing"),
    "no neuron": (lambda: [aa.neuron("L0H0", "query", 8, 0.0)], "has neurons 0 to 7"),
    "set and multiplied": (lambda: [aa.neuron("L0H0", "key", 1)], "give one of value and scale"),
    "unknown kind": (lambda: [{"edit": "melt"}], "no edit is called 'melt'; there are ablate"),
    "unknown field": (
        lambda: [{"edit": "scale", "heads": "L0H0", "x": 1}],
        "no edit of kind scale",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_what_cannot_be_done_is_one_sentence(case: str) -> None:
    make, sentence = SENTENCES[case]
    model = gpt()
    with pytest.raises(aa.AtlasError, match=sentence) as error, aa.edit(model, make()):
        model(IDS)
    assert "\n" not in str(error.value)


def test_a_name_is_no_model_that_can_be_edited() -> None:
    with (
        pytest.raises(aa.InputError, match="give the model that you run"),
        aa.edit("builtin:gpt", aa.ablate("L0H0")),
    ):
        pass


def test_a_shared_key_says_which_heads_it_touches() -> None:
    with (
        pytest.raises(
            aa.InputError, match=r"decoder\.L0H1 shares its key with decoder\.L0H0; name"
        ),
        aa.edit(llama(), aa.neuron("L0H1", "key", 0, 1.0)),
    ):
        pass


@pytest.mark.filterwarnings("ignore")
def test_a_traced_model_is_edited_in_what_its_heads_move_and_else_refused() -> None:
    model = ZOO["GPT-J"].build("eager")
    before = model(IDS)[0]
    with aa.edit(model, aa.ablate("L1H2")):
        changed = model(IDS)[0]

    def cut(_module: Any, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        heads = split(args[0], 4).clone()
        heads[:, :, 2] = 0
        return (heads.flatten(-2),)

    hook = model.h[1].attn.out_proj.register_forward_pre_hook(cut)
    expected = model(IDS)[0]
    hook.remove()
    assert torch.equal(changed, expected) and not torch.equal(changed, before)
    for edit in (aa.mask("L1H2", token=0), aa.pattern("L1H2", "even")):
        with (
            pytest.raises(aa.ModelError, match="only what its heads move can be edited"),
            aa.edit(model, edit),
        ):
            pass
