"""What if single neurons of a query, key or value had other values?"""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.edit import Edit, Stage, head_names, numbers
from attention_atlas.edits.here import Here, grid
from attention_atlas.edits.shared import refuse_shared
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.door import Passing

SIDES = ("query", "key", "value")


@dataclass(frozen=True)
class Neuron(Edit):
    """Neurons of some heads that are set or multiplied."""

    side: str
    index: tuple[int, ...]
    value: float | None
    scale: float | None
    shared: bool | None

    kind: ClassVar[str] = "neuron"

    @property
    def stage(self) -> Stage:
        """Tell that vectors are changed before attention."""
        return Stage.vectors

    def check(self, heads: dict[ModelLayer, tuple[int, ...]]) -> None:
        """Refuse neurons that are not there, and keys that other heads share."""
        refuse_shared(self.side, heads, bool(self.shared))
        for layer, named in heads.items():
            width = layer.value_width if self.side == "value" else layer.width
            if max(self.index) >= width:
                raise InputError(
                    f"neuron {max(self.index)} was asked for and the {self.side} of "
                    f"{layer.name(named[0])} has neurons 0 to {width - 1}"
                )

    def before(self, passing: Passing, here: Here) -> None:
        """Change the neurons."""
        if self.side == "query":
            places = here.queries(passing.query.shape[2])
            passing.query = self._changed(passing.query, here, here.heads, places)
        elif self.side == "key":
            places = here.keys(passing.key.shape[2])
            groups = here.layer.groups_of(here.heads)
            passing.key = self._changed(passing.key, here, groups, places)
        else:
            places = here.keys(passing.value.shape[2])
            groups = here.layer.groups_of(here.heads)
            passing.value = self._changed(passing.value, here, groups, places)

    def _changed(
        self, vectors: Tensor, here: Here, heads: tuple[int, ...], places: list[int]
    ) -> Tensor:
        rows = here.rows(len(vectors))
        if not rows or not places:
            return vectors
        start = here.part * vectors.shape[-1] if self.side == "value" else 0
        start %= here.layer.value_width  # of a layer whose values come in several calls
        index = [i - start for i in self.index if 0 <= i - start < vectors.shape[-1]]
        place = grid(rows, heads, places, index, device=vectors.device)
        new = vectors.clone()
        if self.scale is not None:
            new[place] = vectors[place] * self.scale
        else:
            new[place] = vectors.new_tensor(self.value)
        return new


def neuron(
    heads: Any,
    side: str,
    index: Any,
    value: float | None = None,
    *,
    scale: float | None = None,
    shared: bool | None = None,
    inputs: Any = None,
    positions: Any = None,
) -> Neuron:
    """Set neurons of a query, key or value, or multiply them; return the edit.

    side    "query", "key" or "value", as they enter attention (after rotary positions)
    index   one or several neurons of the head
    shared  touch also the heads that share this key or value
    """
    if side not in SIDES:
        raise InputError(f"no side is called {side!r}; give one of {', '.join(SIDES)}")
    if (value is None) == (scale is None):
        raise InputError("a neuron is either set or multiplied; give one of value and scale")
    several = numbers(index, "neuron")
    if not several:
        raise InputError("a change of no neuron was asked for; give its index")
    return Neuron(
        head_names(heads), numbers(inputs, "input"), numbers(positions, "position"), side, several,
        None if value is None else float(value), None if scale is None else float(scale),
        shared or None,
    )  # fmt: skip
