"""Is a head that is ablated the head that was asked for, before the output projection?"""

import pytest
import torch

import attention_atlas as aa
from tests.record.test_door import OWN, plainly, state, surgery
from tests.record.test_two_threads import gpt


def test_a_head_ablated_by_zero_is_a_head_cut_from_the_output_projection() -> None:
    model = gpt()
    plain, before = plainly(model), state(model)
    with aa.edit(model, [aa.ablate("L1H2")]):
        changed = plainly(model)
    assert state(model) == before
    with surgery(model.transformer.h[1].attn.c_proj.weight, OWN, 0.0):
        assert torch.equal(changed, plainly(model))
    assert (changed - plain).abs().max() > 0.01
    assert torch.equal(plainly(model), plain)


def test_a_missing_head_is_one_sentence() -> None:
    with (
        pytest.raises(aa.PickError, match="there is no head L1H9; decoder has heads 0 to 3"),
        aa.edit(gpt(), [aa.ablate("L1H9")]),
    ):
        pass
