"""Can a kind of edit be added as one class and one line, as the documents say?"""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

import attention_atlas as aa
from attention_atlas.edits.edit import Edit, head_names, numbers
from attention_atlas.edits.here import Here, grid
from attention_atlas.edits.table import EDITS, from_json
from attention_atlas.record.watch.door import Passing
from tests.record.test_door import OWN, plainly, surgery
from tests.record.test_two_threads import gpt


@dataclass(frozen=True)
class Flip(Edit):
    """Heads whose output has the opposite sign."""

    kind: ClassVar[str] = "flip"

    def output(self, passing: Passing, here: Here) -> None:
        output = passing.output
        rows, queries = here.rows(len(output)), here.queries(output.shape[1])
        place = grid(rows, queries, here.heads, device=output.device)
        new = output.clone()
        new[place] = -output[place]
        passing.output = new


def flip(heads: Any, *, inputs: Any = None, positions: Any = None) -> Flip:
    return Flip(head_names(heads), numbers(inputs, "input"), numbers(positions, "position"))


def test_a_new_kind_is_one_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EDITS, "flip", flip)
    edit = from_json({"edit": "flip", "heads": ["L1H2"]})
    assert edit == flip("L1H2") and from_json(edit.to_json()) == edit
    model = gpt()
    with aa.edit(model, edit):
        changed = plainly(model)
    with surgery(model.transformer.h[1].attn.c_proj.weight, OWN, -1.0):
        assert torch.equal(changed, plainly(model))
