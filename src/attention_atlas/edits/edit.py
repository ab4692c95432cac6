"""What is an edit? Data that says how the forward pass is changed, in which heads and where.

An edit is frozen, can be compared and hashed, and is JSON both ways (`table`). It is applied in the
order of the data through attention; edits of one stage are applied in the order of their list:

    vectors   query, key and value: neuron, patch of a query, key or value
    mask      which keys are seen: mask
    weights   after the softmax: pattern, patch of a pattern
    output    what each head moves, before the output projection: ablate, scale, patch of an output
"""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from attention_atlas.names.arguments import is_whole, several, shown
from attention_atlas.names.errors import InputError
from attention_atlas.names.head import Head

if TYPE_CHECKING:
    from attention_atlas.edits.anatomy import ModelLayer
    from attention_atlas.edits.here import Here
    from attention_atlas.edits.inputs import Given
    from attention_atlas.record.watch.door import Passing

ALL = "all"
LARGEST = 2**31  # of an input, a position or a neuron


class Stage(IntEnum):
    """The stages of attention in the order of the data."""

    vectors = 0
    mask = 1
    weights = 2
    output = 3


@dataclass(frozen=True)
class Edit:
    """A change of the forward pass in some heads.

    heads      names such as L5H1, whole layers such as L5, or "all"
    inputs     rows of the batch, or inputs of the atlas that is captured; None: all
    positions  tokens from zero, generated ones too; None: all
    """

    heads: tuple[str, ...]
    inputs: tuple[int, ...] | None
    positions: tuple[int, ...] | None

    kind: ClassVar[str]
    sides: ClassVar[frozenset[str]] = frozenset()  # of a reference run: what is read from it
    alone: ClassVar[bool] = False  # whether it needs inputs without padding

    @property
    def stage(self) -> Stage:
        """Tell at which stage of attention this edit is applied."""
        return Stage.output

    @property
    def references(self) -> "tuple[Given, ...] | None":
        """Return the inputs of its reference run: () if still to be chosen, None if it has none."""
        return None

    def check(self, heads: "dict[ModelLayer, tuple[int, ...]]") -> None:
        """Refuse what cannot be done with these heads of the model at hand."""

    def before(self, passing: "Passing", here: "Here") -> None:
        """Change query, key, value or mask."""

    def weights(self, passing: "Passing", here: "Here") -> None:
        """Change the weights."""

    def output(self, passing: "Passing", here: "Here") -> None:
        """Change what the heads move."""

    def to_json(self) -> dict[str, Any]:
        """Return the edit as JSON: its kind and the fields that are set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"edit": self.kind} | {
            name.rstrip("_"): _plain(value) for name, value in values.items() if value is not None
        }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value.to_json() if hasattr(value, "to_json") else value


def head_names(heads: Any) -> tuple[str, ...]:
    """Return the names of heads, given one or several; whether they exist only a model can say."""
    names = [heads] if isinstance(heads, str | Head) else several(heads, "heads")
    if not names:
        raise InputError('an edit of no head was asked for; name heads as in L5H1, or say "all"')
    for name in names:
        if not isinstance(name, str | Head):
            raise InputError(f"a head is {shown(name)}; name heads as in L5H1")
    return tuple(str(name) for name in names)


def numbers(given: Any, what: str) -> tuple[int, ...] | None:
    """Return numbers from zero, given one or several; None stays None."""
    if given is None:
        return None
    listed = [given] if is_whole(given) else several(given, f"{what}s")
    for number in listed:
        if not is_whole(number):
            raise InputError(f"{what} is {shown(number)}; give a whole number")
        if not 0 <= number < LARGEST:
            raise InputError(f"{what} {number} was given; count from zero to {LARGEST - 1}")
    return tuple(int(number) for number in listed)
