"""What is patched, where, and what is read of the answer?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from attention_atlas.edits.anatomy import Anatomy, ModelLayer
from attention_atlas.edits.edit import head_names, numbers
from attention_atlas.edits.names import heads_by_layer
from attention_atlas.edits.patch import STAGES
from attention_atlas.lab.answers import check_metric
from attention_atlas.names.errors import InputError
from attention_atlas.names.head import Head

DIRECTIONS = ("denoise", "noise")
EACH = "each"
SHARED = ("key", "value")  # sides that the heads of a group share


@dataclass(frozen=True)
class Plan:
    """The choices of a patching study."""

    metric: str
    what: str
    heads: tuple[str, ...]
    positions: tuple[int, ...] | str | None  # each alone; "each": every one; None: all together
    directions: tuple[str, ...]
    through: tuple[str, ...]  # receiving heads of paths


def make_plan(
    metric: str, what: str, heads: Any, positions: Any, direction: str, through: Any
) -> Plan:
    """Return the choices of a study; those that cannot be are an InputError."""
    check_metric(metric)
    if what not in STAGES:
        raise InputError(f"a patch of {what!r} was asked for; give one of {', '.join(STAGES)}")
    if direction not in (*DIRECTIONS, "both"):
        raise InputError(f"no direction is called {direction!r}; give denoise, noise or both")
    if isinstance(positions, str) and positions != EACH:
        raise InputError(f'positions are numbers or "{EACH}"; {positions!r} was given')
    places = positions if isinstance(positions, str) else numbers(positions, "position")
    if places == ():
        raise InputError(f'no position was given; give numbers of tokens or "{EACH}"')
    receivers = () if through is None else head_names(through)
    if receivers and what == "pattern":
        raise InputError(
            "a path enters a head by its query, key or value; a path into its pattern was asked for"
        )
    if receivers and positions is not None:
        raise InputError("paths are followed at all positions together; leave out positions")
    return Plan(
        metric, what, head_names(heads),
        places,
        DIRECTIONS if direction == "both" else (direction,), receivers,
    )  # fmt: skip


@dataclass(frozen=True)
class Unit:
    """Heads of one layer that can only be patched together: one, or those that share a key."""

    layer: ModelLayer
    heads: tuple[int, ...]

    def names(self) -> list[str]:
        """Return the names of its heads, with their tower."""
        return [self.layer.name(head) for head in self.heads]


def units(names: Iterable[str], known: Anatomy, what: str) -> Iterator[Unit]:
    """Yield the units of some heads for a patch of `what`, layer by layer."""
    for layer, heads in heads_by_layer(names, known).items():
        together = {
            tuple(layer.sharing(head)) if what in SHARED else (head,): None for head in heads
        }
        for unit in together:
            yield Unit(layer, unit)


def short_name(known: Anatomy, layer: ModelLayer, head: int) -> str:
    """Return the name of a head, with its tower only where there are several."""
    tower = layer.tower if len(known.towers) > 1 else ""
    return str(Head(tower, layer.number, head))
