"""What does each case of a test give: with its edits, without, and with each control?"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.edits.edit import Edit
from attention_atlas.edits.inputs import freeze
from attention_atlas.edits.names import heads_by_layer
from attention_atlas.lab.answers import Question, question
from attention_atlas.lab.saved_tests.controls import other_heads, other_positions
from attention_atlas.lab.saved_tests.definition import SavedTest, TestCase
from attention_atlas.lab.saved_tests.fill import answers, case_edits, fill
from attention_atlas.lab.worlds import Scene, scene
from attention_atlas.measure.kinds import classify
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import InputError, ModelError
from attention_atlas.record.watch.ways import observe

HEADS, POSITIONS, SAME = "random heads", "random positions", "same answer"
NOT_MADE = {
    HEADS: "the edits are of more than half of the heads of a layer",
    POSITIONS: "the edits name no positions, or the inputs have too few others",
    SAME: "the cases name no input with the same answer",
}


@dataclass(frozen=True)
class Measured:
    """One case: the metric without and with the edits, and what the controls change (NaN: none)."""

    plain: float
    edited: float
    controls: dict[str, float]

    @property
    def effect(self) -> float:
        """Return what the edits change."""
        return self.edited - self.plain


def measure_case(loaded: Loaded, test: SavedTest, number: int) -> Measured:
    """Run one case of a test; return what it gives."""
    case = test.cases[number]
    here, asked = _asked(loaded, test, case, case.input)
    dice = np.random.default_rng([test.controls.seed, number])
    edits = case_edits(test.edits, case, here, asked.place)
    length = max((len(tokens) for tokens in here.item.streams.values()), default=0)
    moved = {
        HEADS: _drawn(test.controls.heads, lambda: other_heads(edits, here.known, dice)),
        POSITIONS: _drawn(test.controls.positions, lambda: other_positions(edits, length, dice)),
    }
    worlds = [[], edits, *moved[HEADS], *moved[POSITIONS]]
    values = [value for logits in here.logits(worlds) for value in asked.read(logits)]
    plain, edited, *others = values
    heads = len(moved[HEADS])
    controls = {
        HEADS: _mean(others[:heads]) - plain,
        POSITIONS: _mean(others[heads:]) - plain,
        SAME: _same_answer(loaded, test, case),
    }
    return Measured(plain, edited, controls)


def _asked(loaded: Loaded, test: SavedTest, case: TestCase, text: Any) -> tuple[Scene, Question]:
    here = scene(loaded, freeze(fill(loaded, text)))
    asked = question(loaded, here.item, answers(loaded, case), test.metric, here.plain)
    return here, asked


def _drawn(count: int, draw: Callable[[], list[Edit] | None]) -> list[list[Edit]]:
    several = [draw() for _ in range(count)]
    return [edits for edits in several if edits is not None]


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _same_answer(loaded: Loaded, test: SavedTest, case: TestCase) -> float:
    if case.same is None:
        return float("nan")
    here, asked = _asked(loaded, test, case, case.same)
    edits = case_edits(test.edits, case, here, asked.place)
    plain, edited = (value for logits in here.logits([[], edits]) for value in asked.read(logits))
    return edited - plain


def measure_label(loaded: Loaded, test: SavedTest, number: int) -> Measured:
    """Return how far a head's kind leads on one case; the control is the head's layer.

    The lead is the evidence for the kind less that for the next one, below zero if another leads.
    """
    assert test.label is not None
    case = test.cases[number]
    here = scene(loaded, freeze(case.input))
    layer, head = _label_head(here, test.label["head"])
    calls = observe(loaded.model, here.tensors, here.known.way, detail=True)
    weights = next(
        (
            call.weights[0]
            for call in calls
            if (call.module, call.visit) == (layer.module, layer.visit) and call.weights is not None
        ),
        None,
    )
    if weights is None:
        raise ModelError(f"the weights of {test.label['head']} were not seen, so its label is open")
    special = _special(here, weights.shape[-1])
    leads = [_lead(kind, test.label["kind"]) for kind in classify(weights.cpu().double(), special)]
    others = [lead for index, lead in enumerate(leads) if index != head]
    nothing = float("nan")
    controls = {HEADS: _mean(others), POSITIONS: nothing, SAME: nothing}
    return Measured(0.0, leads[head], controls)


def _label_head(here: Scene, name: str) -> tuple[Any, int]:
    ((layer, heads),) = heads_by_layer([name], here.known).items()
    if len(heads) != 1:
        raise InputError(f"{name} is no head; a label is that of one head, as in L5H1")
    return layer, heads[0]


def _special(here: Scene, keys: int) -> Any:
    tokens = next(iter(here.item.streams.values()), None)
    return tokens.special if tokens is not None and len(tokens) == keys else None


def _lead(kind: Any, wanted: str) -> float:
    if kind.name == wanted:
        return float(kind.margin)
    others = [value for name, value in kind.evidence.items() if name != wanted]
    return float(kind.evidence[wanted] - max(others))
