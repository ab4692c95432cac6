"""What crosses for the Map tab: places of points, what each point is, and what is computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class MapGroup:
    """Heads of a map that share their tokens: a tower, as a rule."""

    name: str
    heads: Sequence[str]
    queries: int  # how many of the points are queries; they come first
    keys: int


@dataclass(frozen=True)
class MapInfo:
    """One layout that is there."""

    name: str  # as in map/{name}: umap-2d
    method: str
    dims: int
    groups: Sequence[MapGroup]
    options: dict[str, str]  # how it was made, to be read by people


@dataclass(frozen=True)
class Estimate:
    """A map that can be made, and about how long it takes here."""

    method: str
    dims: int
    seconds: float


@dataclass(frozen=True)
class MapPlaces:
    """`map/{name}/{group}`: where the queries, then the keys, of every head lie."""

    map: str
    group: str
    heads: Sequence[str]
    queries: int  # of the P points; the rest are keys
    places: Annotated[Array, Buffer(("u2",), "heads P dims")]  # 0 to 65535 across the box
    box: Annotated[Array, Buffer(("f4",), "heads 2 dims")]  # where 0 and 65535 lie
    c: Annotated[Array, Buffer(("f4",), "heads")]  # queries × c and keys ÷ c before the layout
    figures: Sequence[str]  # what the columns of fidelity are
    fidelity: Annotated[Array, Buffer(("f4",), "heads F")]  # NaN where it cannot be told


@dataclass(frozen=True)
class NumberColumn:
    """One number a point: low + value / 65534 · (high − low); 65535 where there is none."""

    name: str
    label: str
    kind: Literal["number"]
    scale: Literal["linear", "log"]  # how a colour scale should run; values themselves are linear
    whole: bool  # numbers without fractions
    low: float
    high: float
    values: Annotated[Array, Buffer(("u2",), "P")]


@dataclass(frozen=True)
class NameColumn:
    """One name a point; the last number of the type where there is none."""

    name: str
    label: str
    kind: Literal["name"]
    names: Sequence[str]
    values: Annotated[Array, Buffer(("u1", "u2"), "P")]


@dataclass(frozen=True)
class MapPoints:
    """`points/{name}/{group}`: what each point is, for all heads, and what can colour it."""

    map: str
    group: str
    queries: int
    token: Annotated[Array, Buffer(("u4",), "P")]  # its number in the atlas
    input: Annotated[Array, Buffer(("u2", "u4"), "P")]
    position: Annotated[Array, Buffer(("u2", "u4"), "P")]  # in its stream of that input
    texts: Sequence[str]  # all distinct tokens, as shown
    text: Annotated[Array, Buffer(("u2", "u4"), "P")]  # which of them
    special: Annotated[Array, Buffer(("u1",), "P")]
    columns: Sequence[NumberColumn | NameColumn]
    image: Annotated[Array, Buffer(("i2",), "P")] | None = None  # as in Stream
    box: Annotated[Array, Buffer(("f4",), "P 4")] | None = None


@dataclass(frozen=True)
class MapNorms:
    """`norms/{name}/{group}`: how long the vectors are, as captured.

    Of a query: low[head, 0] + value / 255 · (high[head, 0] − low[head, 0]); of a key with 1 in
    place of 0. Times c for a query, over c for a key, they are as scaled for the map.
    """

    map: str
    group: str
    queries: int
    values: Annotated[Array, Buffer(("u1",), "heads P")]
    low: Annotated[Array, Buffer(("f4",), "heads 2")]
    high: Annotated[Array, Buffer(("f4",), "heads 2")]


@dataclass(frozen=True)
class MapExtra:
    """`extra/{name}/{group}/{input}`: an added input on a map that does not move for it."""

    places: Annotated[Array, Buffer(("f4",), "heads P dims")]  # 0 to 1 across the box, or beyond
    points: MapPoints  # columns have the ranges and names of the map's own
    norms: MapNorms  # ranges of its own


@dataclass(frozen=True)
class MeanPattern:
    """`mean/{head}`: the mean weights over all inputs, by position, rows made to sum to one.

    Row i is over the inputs that reach position i; only the first positions are here.
    """

    head: str
    inputs: int
    longest: int  # tokens of the longest input
    reached: Annotated[Array, Buffer(("u4",), "N")]  # inputs behind each row
    weights: Annotated[Array, Buffer(("u2",), "N M")]  # 65535ths


@dataclass(frozen=True)
class MapProgress:
    """`progress`: what is being computed, or how the last one ended."""

    state: Literal["idle", "running", "done", "stopped", "failed"]
    map: str = ""
    done: int = 0  # heads
    total: int = 0
    seconds_left: float | None = None
    error: str = ""
