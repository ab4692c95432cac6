"""What does the Heads tab get? Kinds, scores, cards and similar heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class MeasureInfo:
    """A measure: its name, title, formula and source."""

    name: str
    title: str
    formula: str
    source: str
    chance: str  # what its chance value means
    range: str = ""  # the values it can have


@dataclass(frozen=True)
class HeadScores:
    """`heads`: the kind and every score of every head; NaN where there is none.

    `heads_without_sinks`: the same of weights without the sinks of each input.
    """

    heads: Sequence[str]
    kinds: Sequence[str]  # names of all kinds
    kind: Annotated[Array, Buffer(("u1",), "heads")]  # index in `kinds`; 255: none
    margin: Annotated[Array, Buffer(("f4",), "heads")]
    agree: Annotated[Array, Buffer(("f4",), "heads")]  # share of inputs that give the same kind
    details: Sequence[str]  # which offset, which end
    measures: Sequence[MeasureInfo]
    value: Annotated[Array, Buffer(("f4",), "measures heads")]
    low: Annotated[Array, Buffer(("f4",), "measures heads")]
    high: Annotated[Array, Buffer(("f4",), "measures heads")]
    chance: Annotated[Array, Buffer(("f4",), "measures heads")]
    n: Annotated[Array, Buffer(("u4",), "measures heads")]  # number of inputs
    odd: Annotated[Array, Buffer(("f4",), "heads")]  # how unusual the head is
    found: Sequence[str]  # what is unusual about it; empty: nothing
    note: str = ""  # where the scores are kept, if not in the folder


@dataclass(frozen=True)
class AlikeHeads:
    """`alike`: a map of heads by what they do; similar heads are near each other."""

    heads: Sequence[str]
    places: Annotated[Array, Buffer(("f4",), "heads 2")]
    cluster: Annotated[Array, Buffer(("u2",), "heads")]  # 0 is the largest


@dataclass(frozen=True)
class NearHead:
    """A similar head."""

    head: str
    divergence: float  # bits: 0 means equal, 1 nothing in common


@dataclass(frozen=True)
class Followed:
    """A relation of the given trees that a head follows better than a fixed offset does."""

    relation: str
    way: Literal["up", "down"]  # up: to the word that the token depends on
    right: float  # share of words for which the head is right
    baseline: float  # the same share for the best offset
    words: int


@dataclass(frozen=True)
class HeadCard:
    """`card/{head}`: what is known of one head besides its row of `heads`.

    `card_without_sinks/{head}`: the same of weights without the sinks of each input.
    """

    head: str
    evidence: dict[str, float]  # shape → 0 … 1
    counts: dict[str, int]  # kind → inputs
    sink: float  # share of attention on the first token and delimiters
    with_sink: str
    without_sink: str | None
    found: Sequence[str]  # sentences about what is unusual
    nearest: Sequence[NearHead]
    telling: Sequence[int]  # inputs that show its kind best
    relations: Sequence[Followed] = ()
