"""Does an edit of each kind that changes nothing give the same outputs, bit for bit?"""

import math

from attention_atlas.edits.ablate import ablate
from attention_atlas.edits.edit import ALL, Edit
from attention_atlas.edits.mask import mask
from attention_atlas.edits.neuron import SIDES, neuron
from attention_atlas.edits.patch import STAGES, patch
from attention_atlas.edits.pattern import pattern
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.prove.found import Found
from attention_atlas.edits.scale import scale


def no_ops(case: Case) -> dict[str, list[Edit]]:
    """Return edits of each kind that change nothing."""
    itself = case.given
    nothing: dict[str, list[Edit]] = {
        "ablate": [ablate(ALL, by="resample", from_=[itself])],
        "scale": [scale(ALL, 1.0)],
        "mask": [mask(ALL, tokens=())],
        "pattern": [pattern(ALL, "even", positions=())],
    }
    for side in SIDES:
        nothing[f"neuron ({side})"] = [neuron(ALL, side, 0, scale=1.0, shared=True)]
    for what in STAGES:
        nothing[f"patch ({what})"] = [patch(ALL, what, from_=itself, shared=True)]
    return nothing


def no_op(case: Case, edits: list[Edit]) -> Found:
    """Compare a run with edits that change nothing with a plain run; the bound is zero."""
    plain = case.plain(any(edit.stage.name == "weights" for edit in edits))
    changed = case.edited(edits)
    if [tensor.shape for tensor in plain] != [tensor.shape for tensor in changed]:
        return Found(math.inf, 0.0)
    off = [
        float((a.nan_to_num() - b.nan_to_num()).abs().max())
        for a, b in zip(plain, changed, strict=True)
        if a.numel()
    ]
    return Found(max(off, default=0.0), 0.0)
