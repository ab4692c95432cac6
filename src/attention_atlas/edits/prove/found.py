"""What does a check of an edit receipt find, over all layers of a model?"""

from collections.abc import Callable
from dataclasses import dataclass

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.prove.case import Case
from attention_atlas.names.errors import AtlasError, ModelError
from attention_atlas.record.prove.layer_errors import bound_of, worst


@dataclass(frozen=True)
class Found:
    """What a check found: the largest error, the bound on it, and what it could not look at."""

    error: float
    bound: float
    note: str = ""


def bound(case: Case) -> float:
    """Return the largest relative error that the model's precision explains."""
    return bound_of(case.loaded.model.dtype)


def over_layers(case: Case, check: Callable[[Case, ModelLayer], float], bound: float) -> Found:
    """Return the worst error over the layers; refuse if it can be found in none of them."""
    error, against, made = 0.0, "", 0
    for layer in case.known.layers:
        try:
            error = worst(error, check(case, layer))
            made += 1
        except AtlasError as problem:
            against = against or str(problem)
    if not made:
        raise ModelError(against)
    note = f"in {made} of {len(case.known.layers)} layers: {against}" if against else ""
    return Found(error, bound, note)
