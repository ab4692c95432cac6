"""What does the Map tab get? Places of points, what each point is, progress of computing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class MapGroup:
    """Heads of a map that share their tokens, usually a tower."""

    name: str
    heads: Sequence[str]
    queries: int  # number of points that are queries; they come first
    keys: int


@dataclass(frozen=True)
class MapInfo:
    """One map of the atlas."""

    name: str  # as in map/{name}: umap-2d
    method: str
    dims: int
    groups: Sequence[MapGroup]
    options: dict[str, str]  # how it was made, for people to read


@dataclass(frozen=True)
class Estimate:
    """A map that can be computed, and about how long that takes on this machine."""

    method: str
    dims: int
    seconds: float


@dataclass(frozen=True)
class MapPlaces:
    """`map/{name}/{group}`: places of the queries, then of the keys, of every head."""

    map: str
    group: str
    heads: Sequence[str]
    queries: int  # number of the P points that are queries; the rest are keys
    places: Annotated[Array, Buffer(("u2",), "heads P dims")]  # 0 to 65535 across the box
    box: Annotated[Array, Buffer(("f4",), "heads 2 dims")]  # coordinates of 0 and 65535
    c: Annotated[Array, Buffer(("f4",), "heads")]  # queries × c and keys ÷ c before the layout
    figures: Sequence[str]  # names of the columns of fidelity
    fidelity: Annotated[Array, Buffer(("f4",), "heads F")]  # NaN where it cannot be computed


@dataclass(frozen=True)
class NumberColumn:
    """One number per point: low + value / 65534 · (high − low); 65535 means none."""

    name: str
    label: str
    kind: Literal["number"]
    scale: Literal["linear", "log"]  # of the colour scale; the values themselves are linear
    whole: bool  # whether all values are whole numbers
    low: float
    high: float
    values: Annotated[Array, Buffer(("u2",), "P")]


@dataclass(frozen=True)
class NameColumn:
    """One name per point, as an index in `names`; the largest number of the type means none."""

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
    text: Annotated[Array, Buffer(("u2", "u4"), "P")]  # index in `texts`
    special: Annotated[Array, Buffer(("u1",), "P")]
    columns: Sequence[NumberColumn | NameColumn]
    image: Annotated[Array, Buffer(("i2",), "P")] | None = None  # as in Stream
    box: Annotated[Array, Buffer(("f4",), "P 4")] | None = None


@dataclass(frozen=True)
class MapNorms:
    """`norms/{name}/{group}`: lengths of the vectors, as captured.

    Of a query: low[head, 0] + value / 255 · (high[head, 0] − low[head, 0]); of a key: the same with
    index 1. For the map they are scaled: queries times c, keys divided by c.
    """

    map: str
    group: str
    queries: int
    values: Annotated[Array, Buffer(("u1",), "heads P")]
    low: Annotated[Array, Buffer(("f4",), "heads 2")]
    high: Annotated[Array, Buffer(("f4",), "heads 2")]


@dataclass(frozen=True)
class MapExtra:
    """`extra/{name}/{group}/{input}`: an added input on a map; the other points stay in place."""

    places: Annotated[Array, Buffer(("f4",), "heads P dims")]  # 0 to 1 across the box, or beyond
    points: MapPoints  # columns with the ranges and names of the map's columns
    norms: MapNorms  # with its own ranges


@dataclass(frozen=True)
class MeanPattern:
    """`mean/{head}`: the mean weights over all inputs by position; rows are scaled to sum to one.

    `mean/{head}/{how}/{without}`: the mean of what is moved or of contributions, without sinks.

    Row i is the mean over the inputs that reach position i; only the first positions are sent.
    """

    head: str
    inputs: int
    longest: int  # tokens of the longest input
    reached: Annotated[Array, Buffer(("u4",), "N")]  # number of inputs in each row's mean
    weights: Annotated[Array, Buffer(("u2", "f4"), "N M")]  # 65535ths; f4: contributions, signed


@dataclass(frozen=True)
class Partners:
    """`partners/{input}/{head}/{side}/{position}`: what one token attends to, or what to it.

    Of a query there is a number for each key, of a key for each query, in the order of positions.
    """

    weights: Annotated[Array, Buffer(("f4",), "P")]
    seen: Annotated[Array, Buffer(("u1",), "P")]  # 1: the mask lets the query see the key


@dataclass(frozen=True)
class MapProgress:
    """`progress`: the running computation, or how the last one ended.

    waiting: computations of other atlases come first, `ahead` of them.
    """

    state: Literal["idle", "waiting", "running", "done", "stopped", "failed"]
    map: str = ""
    done: int = 0  # heads, or tokens of `head`
    total: int = 0
    seconds_left: float | None = None
    error: str = ""
    head: str = ""  # whose tokens are placed; empty if a map is computed
    ahead: int = 0
