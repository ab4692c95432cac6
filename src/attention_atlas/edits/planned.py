"""How do edits travel in the plan of a capture, which is JSON?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from attention_atlas.edits.anatomy import Anatomy, ModelLayer
from attention_atlas.edits.bind import MOST, bind, with_references
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.hooks import Stack
from attention_atlas.edits.inputs import Given, freeze
from attention_atlas.edits.table import read_edits
from attention_atlas.models.inputs import Input
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import InputError


def plan_edits(
    edits: Sequence[Edit], known: Anatomy, corpus: Mapping[int, Input]
) -> dict[str, Any]:
    """Return edits with their reference inputs and the model's anatomy, as JSON."""
    at_hand: list[Given] = []
    if any(edit.references == () for edit in edits):
        at_hand = [freeze(given) for given in list(corpus.values())[:MOST]]
    named = with_references(edits, at_hand)
    return {"edits": [edit.to_json() for edit in named], "anatomy": asdict(known)}


def needs_lone_inputs(edits: Sequence[Edit]) -> bool:
    """Tell whether inputs must run one at a time, since an edit fits one length."""
    return any(edit.alone for edit in edits)


def planned_stack(planned: Mapping[str, Any], loaded: Loaded) -> Stack:
    """Return the edits of a plan, ready to be applied to the model."""
    raw = planned["anatomy"]
    known = Anatomy(**{**raw, "layers": tuple(ModelLayer(**layer) for layer in raw["layers"])})
    return Stack(bind(loaded, read_edits(planned["edits"]), known))


def frozen(numbers: Sequence[int], corpus: Mapping[int, Input]) -> dict[int, Given]:
    """Return inputs as edits write them, by number; those that cannot be written are left out."""
    written = {}
    for number in numbers:
        try:
            written[number] = freeze(corpus[number])
        except InputError:
            continue
    return written
