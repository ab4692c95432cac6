"""What crosses for the Heads tab: kinds, scores, cards, heads alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class MeasureInfo:
    """What goes with a score's name."""

    name: str
    title: str
    formula: str
    source: str
    chance: str  # what its chance value means
    range: str = ""  # what it can be at all


@dataclass(frozen=True)
class HeadScores:
    """`heads`: the kind and every score of every head; NaN where there is none."""

    heads: Sequence[str]
    kinds: Sequence[str]  # all names there are
    kind: Annotated[Array, Buffer(("u1",), "heads")]  # which of them; 255: none
    margin: Annotated[Array, Buffer(("f4",), "heads")]
    agree: Annotated[Array, Buffer(("f4",), "heads")]  # share of inputs that give the same kind
    details: Sequence[str]  # which offset, which end
    measures: Sequence[MeasureInfo]
    value: Annotated[Array, Buffer(("f4",), "measures heads")]
    low: Annotated[Array, Buffer(("f4",), "measures heads")]
    high: Annotated[Array, Buffer(("f4",), "measures heads")]
    chance: Annotated[Array, Buffer(("f4",), "measures heads")]
    n: Annotated[Array, Buffer(("u4",), "measures heads")]  # inputs
    odd: Annotated[Array, Buffer(("f4",), "heads")]  # how much it is worth a look
    found: Sequence[str]  # what stands out about it; empty: nothing


@dataclass(frozen=True)
class AlikeHeads:
    """`alike`: heads by what they do; near on the map is alike."""

    heads: Sequence[str]
    places: Annotated[Array, Buffer(("f4",), "heads 2")]
    cluster: Annotated[Array, Buffer(("u2",), "heads")]  # 0 is the largest


@dataclass(frozen=True)
class NearHead:
    head: str
    divergence: float  # bits: 0 is the same, 1 is nothing in common


@dataclass(frozen=True)
class Followed:
    """A relation of the trees given that a head follows better than a fixed offset."""

    relation: str
    way: Literal["up", "down"]  # up: to the word that it depends on
    right: float  # share of the words
    baseline: float  # of the best offset
    words: int


@dataclass(frozen=True)
class HeadCard:
    """`card/{head}`: what is known of one head beyond its row of `heads`."""

    head: str
    evidence: dict[str, float]  # shape → 0 … 1
    counts: dict[str, int]  # kind → inputs
    sink: float  # share of attention on the first token and delimiters
    with_sink: str
    without_sink: str | None
    found: Sequence[str]  # sentences: what stands out
    nearest: Sequence[NearHead]
    telling: Sequence[int]  # inputs that show its kind best
    relations: Sequence[Followed] = ()
