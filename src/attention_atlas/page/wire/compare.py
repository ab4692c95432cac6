"""What does the page get to compare models side by side?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class Compared:
    """One model of a comparison, on the inputs that all of them read."""

    name: str
    way: str  # relative address of its page; empty for this page, or if it has none
    heads: Sequence[str]
    kind: Annotated[Array, Buffer(("u1",), "heads")]  # 255: none
    importance: Annotated[Array, Buffer(("f4",), "heads")]
    chosen: Annotated[Array, Buffer(("f4",), "heads")]  # importance in rows with a choice
    statistics: dict[str, float]  # the study's Table 1
    statistics_chosen: dict[str, float]
    counts: dict[str, int]  # kind → heads
    matched: Sequence[str]  # heads that are compared with those of the other models


@dataclass(frozen=True)
class Counterparts:
    """Distances of the first model's heads to those of another, in bits; 0 means equal."""

    nearest: Annotated[Array, Buffer(("u2",), "matched")]  # index in the other's matched heads
    away: Annotated[Array, Buffer(("f4",), "matched")]
    same: Annotated[Array, Buffer(("f4",), "matched")] | None  # to the head of the same name


@dataclass(frozen=True)
class ComparedModels:
    """`compare/{k,…}`: this model and those of the atlases k of `about` on shared inputs.

    `compare_without_sinks/{k,…}`: the same, scores and kinds without the sinks of each input.
    """

    models: Sequence[Compared]  # this one first
    counterparts: Sequence[Counterparts]  # one per model from the second on
    kinds: Sequence[str]
    inputs: Annotated[Array, Buffer(("u4",), "shared models")]  # the input's number in each model
    labels: Sequence[str]
    places: Annotated[Array, Buffer(("f4",), "heads 2")]  # similar heads are near
    note: str
    line_heads: Sequence[str]  # heads that all models have; empty: their shapes differ
    line_measures: Sequence[str]
    line_titles: Sequence[str]
    lines: Annotated[Array, Buffer(("f4",), "line_measures models line_heads")]
    no_lines: str  # why there are no lines per head; else empty


@dataclass(frozen=True)
class Reacted:
    """What every head of one model did with an input, as small pictures."""

    tokens: int
    importance: Annotated[Array, Buffer(("f4",), "heads")]
    cells: Annotated[Array, Buffer(("u1",), "heads P P")]  # largest weight of each part, 255ths


@dataclass(frozen=True)
class Reaction:
    """`reaction/{k,…}/{place}`: the models of a comparison on one of their shared inputs."""

    models: Sequence[Reacted]
