"""What does the Lab get? What a model gives with edits, beside what it gives plainly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Predicts = Literal["next", "masked", "label", ""]
Verdict = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class EditPick:
    """One edit of the list, which can be switched off."""

    on: bool
    edit: dict[str, Any]  # as `to_json` of an edit writes it


@dataclass(frozen=True)
class EditInput:
    """`edit`: let the live model read an input plainly and with edits."""

    input: int
    edits: Sequence[dict[str, Any]]
    at: int | None = None  # position whose prediction is wanted; None: the last, or the masked ones
    generate: int = 0  # new tokens of the text before and after; 0: none


@dataclass(frozen=True)
class EditDone:
    """What one edit does, and which heads it touches."""

    sentence: str
    touches: Sequence[str]


@dataclass(frozen=True)
class PredictedToken:
    """A token or label with its probability before and after the edits."""

    text: str
    id: int
    before: float
    after: float


@dataclass(frozen=True)
class Prediction:
    """What the model predicts at one position: the likeliest before and those after, together."""

    position: int  # -1: of the whole input
    label: str
    tokens: Sequence[PredictedToken]


@dataclass(frozen=True)
class GeneratedText:
    """What the model writes after the input, greedily; the first `same` characters are equal."""

    before: str
    after: str
    same: int


@dataclass(frozen=True)
class HeadChange:
    """How much the attention of a head changes: mean total variation of its rows, 0 to 1."""

    head: str
    attention: float


@dataclass(frozen=True)
class EditedInput:
    """The edited input; ask for input/{input}, edges/{input}/…, rows, layer, vectors, gaze.

    It has the tokens of the plain input and is not listed in `about`. `plain` is the same input
    without edits from the same run, so where nothing changed their difference is exactly zero.
    """

    input: int
    plain: int
    seconds: float
    notes: Sequence[str]
    edits: Sequence[EditDone]
    predicts: Predicts  # empty: the notes say why
    predictions: Sequence[Prediction]
    text: GeneratedText | None
    change: Sequence[HeadChange]


@dataclass(frozen=True)
class LabelQuestion:
    """`test_label`: let the live model test the kind of a head on new texts."""

    head: str


@dataclass(frozen=True)
class LabelVerdict:
    """Whether the kind of a head is that of new texts too, and by how much it leads the others."""

    head: str
    kind: str
    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class EditProof:
    """One check of the edit receipt; `holds` is None if it cannot be made in this model."""

    name: str
    sentence: str
    holds: bool | None


@dataclass(frozen=True)
class EditProofs:
    """`edit_receipt`: whether edits of the live model are those that were asked for.

    The checks run in the background once; ask again until `done`.
    """

    line: str
    holds: bool
    parts: Sequence[EditProof]
    done: bool
