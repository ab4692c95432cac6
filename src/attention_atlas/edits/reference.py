"""What do the heads do on other inputs? Mean, resample and patch take their values from there.

The reference inputs run one at a time through the unedited model, with the attention with which it
is edited afterwards, and only what the edits need is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.inputs import Given
from attention_atlas.names.errors import ModelError
from attention_atlas.record.watch.door import Passing

Site = tuple[str, int]  # module and visit


@dataclass
class Reference:
    """What one edit reads from its reference inputs."""

    heads: Mapping[Site, tuple[int, ...]]  # that are kept, by layer
    groups: Mapping[Site, tuple[int, ...]]
    sides: frozenset[str]
    inputs: tuple[Given, ...] = ()
    kept: dict[tuple[Site, int, str], dict[Given, Tensor]] = field(default_factory=dict)

    def read(self, layer: ModelLayer, part: int, side: str) -> list[Tensor]:
        """Return what was kept of a layer's call, one tensor for each reference input."""
        kept = self.kept.get(((layer.module, layer.visit), part, side), {})
        if len(kept) < len(set(self.inputs)):
            raise ModelError(
                f"{layer.tower} {layer.number} does not run on every reference input, so nothing "
                "can be taken from them"
            )
        return [kept[given] for given in self.inputs]


class Parts:
    """A count of the calls of one visit: some modules call attention several times."""

    def __init__(self) -> None:
        self._last: object = None
        self._count = 0

    def of(self, site: object) -> int:
        """Return how many calls were made before at this site, without another in between."""
        self._count = self._count + 1 if site == self._last else 0
        self._last = site
        return self._count


class Collecting:
    """A hook that keeps what some edits read from their reference inputs."""

    def __init__(self, given: Given, references: list[Reference], needs_weights: bool):
        self.given, self.references = given, references
        self.needs_weights = needs_weights
        self._parts = Parts()

    def before(self, passing: Passing) -> None:
        """Do nothing: all is read after attention."""

    def after(self, passing: Passing) -> None:
        """Keep the sides of the chosen heads, (n, h, E) or (h, n, …), of the one input."""
        site = passing.site.module, passing.site.visit
        part = self._parts.of(passing.site)
        for reference in self.references:
            if site not in reference.heads:
                continue
            for side in reference.sides:
                kept = self._one(reference, site, side, passing)
                reference.kept.setdefault((site, part, side), {})[self.given] = kept

    def _one(self, reference: Reference, site: Site, side: str, passing: Passing) -> Tensor:
        sides: dict[str, Any] = {
            "output": lambda: passing.output[:, :, list(reference.heads[site])],
            "pattern": lambda: _given(passing.weights)[:, list(reference.heads[site])],
            "query": lambda: passing.query[:, list(reference.heads[site])],
            "key": lambda: passing.key[:, list(reference.groups[site])],
            "value": lambda: passing.value[:, list(reference.groups[site])],
        }
        several: Tensor = sides[side]().detach()
        if len(several) != 1:
            raise ModelError(
                f"{passing.site.module} runs an input in parts, so nothing can be taken there from "
                "another input"
            )
        return several[0].clone()


def _given(weights: Tensor | None) -> Tensor:
    assert weights is not None
    return weights
