"""Is an edit of this model the one that was asked for?

A receipt of six kinds of checks, each on the model at hand:

no-op           an edit of each kind that changes nothing gives the same outputs, bit for bit
contributions   what the heads of a layer give, one by one, adds up to what the layer gives
all ablated     a layer without all its heads gives what its projection gives for zeros
no say          what is left without a head does not change when the values of that head change;
                an ablation that cuts the output after the projection into parts fails here
read back       the weights of a head whose pattern was set are that pattern
renormalised    the weights of a head that may not see a token are its own, shared out anew
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from attention_atlas.edits.anatomy import anatomy
from attention_atlas.edits.apply import editing
from attention_atlas.edits.inputs import freeze
from attention_atlas.edits.prove.case import Case, Editing
from attention_atlas.edits.prove.contributions import all_ablated, contributions, no_say
from attention_atlas.edits.prove.found import Found
from attention_atlas.edits.prove.no_ops import no_op, no_ops
from attention_atlas.edits.prove.weights import read_back, renormalised
from attention_atlas.models.encode import Encoded, collate, encode
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.errors import AtlasError
from attention_atlas.record.prove.check import sample_inputs

CHECKS: dict[str, Callable[[Case], Found]] = {
    "contributions add up to the layer": contributions,
    "all heads ablated: as attention zeroed": all_ablated,
    "an ablated head has no say": no_say,
    "a pattern that was set is read back": read_back,
    "what a mask leaves is renormalised": renormalised,
}


@dataclass(frozen=True)
class EditCheck:
    """One check of an edit receipt."""

    name: str
    error: float | None  # None: refused
    bound: float | None
    note: str = ""  # what it could not look at
    refused: str = ""  # why it cannot be made in this model

    @property
    def holds(self) -> bool:
        """Tell whether the check was made and found nothing beyond its bound."""
        return self.error is not None and self.bound is not None and self.error <= self.bound


@dataclass(frozen=True)
class EditReceipt:
    """The proof that edits of a model are those that were asked for."""

    model: str
    how: str  # "named", "eager" or "trace"
    checks: tuple[EditCheck, ...]

    @property
    def holds(self) -> bool:
        """Tell whether every check that can be made in this model holds, and some can."""
        made = [check for check in self.checks if not check.refused]
        return bool(made) and all(check.holds for check in made)


def check_edits(
    model: Any, inputs: Any = None, tokenizer: Any = None, *, seed: int = 0, **loading: Any
) -> EditReceipt:
    """Return the edit receipt of a model, for your first input or a sample input.

    Read `.holds`, and one entry for each check in `.checks`. `loading` are the fields of `Loading`.
    """
    loaded = load(model, tokenizer, **loading)
    if inputs is None:
        items = sample_inputs(loaded, seed)
    else:
        items = [encode(loaded, given) for given in read_inputs(inputs)[:2]]
    return edit_receipt(loaded, items)


def edit_receipt(
    loaded: Loaded,
    items: list[Encoded],
    editing: Editing = editing,
    watch: Callable[[EditCheck, int], None] = lambda _check, _total: None,
) -> EditReceipt:
    """Return the edit receipt of a model on the first of some inputs.

    editing  how the model is edited, which is what the receipt checks
    watch    called with each check and the number of all checks

    Between two passes of the model other threads may run it.
    """
    known = anatomy(loaded, items)
    tensors, _ = collate(items[:1], loaded)
    case = Case(loaded, known, freeze(items[0].tensors), tensors, editing)
    checks: dict[str, Callable[[], Found]] = {
        f"no-op of {name}": partial(no_op, case, edits) for name, edits in no_ops(case).items()
    }
    checks |= {name: partial(check, case) for name, check in CHECKS.items()}
    made = []
    for name, check in checks.items():
        made.append(_made(name, check))
        watch(made[-1], len(checks))
    return EditReceipt(loaded.name, known.way, tuple(made))


def _made(name: str, check: Callable[[], Found]) -> EditCheck:
    try:
        found = check()
    except AtlasError as problem:
        return EditCheck(name, None, None, refused=str(problem))
    return EditCheck(name, found.error, found.bound, found.note)
