"""What changes when attention is edited? The model reads an input plainly and with edits."""

import time
from typing import Annotated, Any

from pydantic import BaseModel, Field

from attention_atlas.names.progress import Progress, bar
from attention_atlas.names.wanted import stop_if_unwanted
from attention_atlas.page.agents.answer import Answer, cut, small
from attention_atlas.page.agents.arguments import InputNumber, Position
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.live.actions import perform
from attention_atlas.page.wire.constants import MOST_EDITS, MOST_GENERATED
from attention_atlas.page.wire.lab import EditedInput, EditProofs

_PATIENCE = 600.0  # seconds for the receipt; a large model takes longer and says how far it is
_POLL = 0.05
_STEPS = 20  # the run, and one for each check of the receipt, of which there are fewer
_TOKENS, _PREDICTIONS, _HEADS, _EDITS = 8, 4, 12, 10
_TEXT = 1500  # characters of a written text


class TokenBeforeAfter(BaseModel):
    """The probability of a token before and after the edits."""

    token: str
    before: float | None
    after: float | None


class PredictionBeforeAfter(BaseModel):
    """What the model predicts at one position."""

    position: int
    tokens: list[TokenBeforeAfter]


class EditReceiptAnswer(BaseModel):
    """Whether edits of this model are those that were asked for, by checks that were run."""

    holds: bool
    line: str
    failed: list[str]


class EditAnswer(Answer):
    """Before and after; `edited` and `plain` are inputs for attention, as long as they are kept."""

    edits: list[str]
    predicts: str
    predictions: list[PredictionBeforeAfter]
    text_before: str | None = None
    text_after: str | None = None
    most_changed_heads: dict[str, float | None]
    heads_changed: int
    edited: int
    plain: int
    receipt: EditReceiptAnswer
    notes: list[str]


def edit(
    bench: AgentBench,
    edits: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=1, max_length=MOST_EDITS,
            description='As in {"edit": "ablate", "heads": ["L1H2"], "by": "zero"}, {"edit": '
            '"scale", "heads": ["L1"], "by": 0.5}, {"edit": "mask", "heads": "all", "tokens": [3]},'
            ' {"edit": "pattern", "heads": ["L0H0"], "pattern": "even"}, {"edit": "neuron", …}, '
            '{"edit": "patch", "heads": ["L2H1"], "what": "output", "from": 1}.',
        ),
    ],
    input: InputNumber = 0,
    at: Position = None,
    generate: Annotated[
        int, Field(ge=0, le=MOST_GENERATED, description="New tokens of text to write.")
    ] = 0,
) -> EditAnswer:  # fmt: skip
    """Run an input with edited attention; give predictions before and after, and the receipt."""
    bench.need_model("edited")
    with bar("edit", _STEPS, show=False) as tick:
        tick(0)
        asked = {"input": input, "edits": edits, "at": at, "generate": generate}
        found: EditedInput = perform(bench.work, "edit", asked)
        tick(1)
        proofs = _receipt(bench, tick)
        tick(_STEPS)
    changed = sorted(
        (each for each in found.change if each.attention > 0), key=lambda each: -each.attention
    )
    text = found.text
    return EditAnswer(
        edits=[cut(done.sentence, 300) for done in found.edits[:_EDITS]],
        predicts=found.predicts,
        predictions=[_prediction(each) for each in found.predictions[:_PREDICTIONS]],
        text_before=None if text is None else cut(text.before, _TEXT),
        text_after=None if text is None else cut(text.after, _TEXT),
        most_changed_heads={each.head: small(each.attention) for each in changed[:_HEADS]},
        heads_changed=len(changed), edited=found.input, plain=found.plain,
        receipt=EditReceiptAnswer(
            holds=proofs.holds, line=proofs.line,
            failed=[cut(f"{part.name} {part.sentence}", 200) for part in proofs.parts
                    if part.holds is False][:5],
        ),
        notes=[cut(note, 300) for note in found.notes[:5]],
        more=[f"attention with input={found.input} gives the edited attention of any head"],
    )  # fmt: skip


def _prediction(given: Any) -> PredictionBeforeAfter:
    tokens = sorted(given.tokens, key=lambda each: -max(each.before, each.after))[:_TOKENS]
    return PredictionBeforeAfter(
        position=given.position,
        tokens=[
            TokenBeforeAfter(token=cut(each.text, 60), before=small(each.before),
                             after=small(each.after))
            for each in tokens
        ],
    )  # fmt: skip


def _receipt(bench: AgentBench, tick: Progress) -> EditProofs:
    """Return the edit receipt of the model; it is made once, and this waits for it."""
    proofs, end = bench.work.edit_receipt(), time.monotonic() + _PATIENCE
    while not proofs.done and time.monotonic() < end:
        stop_if_unwanted()
        tick(min(_STEPS - 1, 1 + len(proofs.parts)))
        time.sleep(_POLL)
        proofs = bench.work.edit_receipt()
    return proofs
