"""What crosses from Python to the browser?

A path is asked for and one packet comes back:

    u4 little-endian   length of the header
    header             UTF-8 JSON: the fields of one dataclass below
    zeros              up to a multiple of 8
    buffers            raw little-endian numbers, each from a multiple of 8

An array in the header is `{"at": offset in the buffers, "type": "f4", "shape": [N, M]}`. This file
is the one schema; `python -m attention_atlas.page.wire.typescript` writes its TypeScript.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Buffer:
    """Marks a field that travels as raw numbers: their types, one of which it has, and axes."""

    types: tuple[str, ...]
    axes: str


@dataclass(frozen=True)
class Failure:
    """What is answered instead, when what was asked for is not to be had."""

    error: str


# about -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InputLine:
    """One input as a list shows it."""

    number: int
    label: str
    kind: str
    second: bool  # it has a second text or a target


@dataclass(frozen=True)
class LayerInfo:
    """One attention layer; `layer` is its number in the model."""

    layer: int
    heads: int
    groups: int  # head h reads key and value group h // (heads / groups)
    width: int
    value_width: int
    has_vectors: bool
    queries: str  # stream names; those of its tower but for models that pool between layers
    keys: str


@dataclass(frozen=True)
class TowerInfo:
    """A run of attention layers."""

    name: str
    role: Literal["self", "causal", "cross"]
    queries: str  # the stream of tokens that look
    keys: str  # the stream of tokens that are looked at
    depth: int  # all layers, those without attention too
    layers: Sequence[LayerInfo]


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
class Neighbour:
    """Another atlas that the same server serves; mixed with this one only to be compared."""

    address: str  # relative to this page's own
    title: str
    inputs: int


@dataclass(frozen=True)
class ThumbSheet:
    """One size in which all pictures are to be had together: `thumbs/{level}`."""

    side: int  # pixels of a cell
    width: int  # of the sheet
    height: int


@dataclass(frozen=True)
class About:
    """`about`: what there is to see."""

    title: str
    model: str
    model_class: str
    kind: Literal["atlas", "attention"]
    receipt_line: str
    exact: bool
    inputs: Sequence[InputLine]
    towers: Sequence[TowerInfo]
    has_values: bool
    notes: Sequence[str]
    maps: Sequence[MapInfo] = ()
    no_maps: str = ""  # why there are none and none can be made; empty otherwise
    can_compute: bool = False  # `compute` may be asked for
    estimates: Sequence[Estimate] = ()  # of what can be computed
    can_add: bool = False  # `add` may be asked for: a live model is there
    added: Sequence[int] = ()  # inputs that were added; not in the folder
    atlases: Sequence[Neighbour] = ()
    can_measure: bool = False  # `heads`, `alike` and `card/{head}` may be asked for
    pictures: bool = False  # inputs have pictures: `picture/{i}/{image}` may be asked for
    patches: Sequence[str] = ()  # streams whose tokens have places in a picture
    thumbs: Sequence[ThumbSheet] = ()  # from coarse to fine; empty: no pictures, or too many


# input/{i} ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TokenInfo:
    """One token of a stream; numbers are -1 where there is none."""

    text: str  # as shown
    raw: str  # as the tokenizer has it
    id: int
    special: bool
    segment: int  # 0 the text, 1 the second text, -1 neither
    word: int
    row: int  # of a patch
    column: int
    generated: bool


@dataclass(frozen=True)
class Stream:
    """One sequence of tokens of an input.

    Boxes are left, top, right, bottom as fractions of the original picture. They may reach a
    little beyond it; they are NaN where a token shows nothing of it: words, class and register
    tokens, patches of padding.
    """

    name: str
    tokens: Sequence[TokenInfo]
    image: Annotated[Array, Buffer(("i2",), "N")] | None = None  # which picture; -1: none
    box: Annotated[Array, Buffer(("f4",), "N 4")] | None = None


@dataclass(frozen=True)
class PictureInfo:
    """One picture of an input, upright: its own size and the name of its file."""

    width: int
    height: int
    name: str


@dataclass(frozen=True)
class InputInfo:
    """`input/{i}`: one input and its tokens."""

    number: int
    text: str
    second: str | None
    boundary: int  # the first token of the second text in its stream, -1 where there is none
    streams: Sequence[Stream]
    pictures: Sequence[PictureInfo] = ()


# Pictures -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """`picture/{i}/{image}`: one picture, upright, on white, at most 1024 pixels a side."""

    input: int
    image: int
    mime: str
    width: int  # as sent
    height: int
    data: Annotated[Array, Buffer(("u1",), "bytes")]


@dataclass(frozen=True)
class Thumbs:
    """`thumbs/{level}`: all pictures of the atlas on one sheet, at most 4096 pixels a side."""

    level: int
    mime: str
    width: int
    height: int
    data: Annotated[Array, Buffer(("u1",), "bytes")]
    input: Annotated[Array, Buffer(("u4",), "cells")]
    image: Annotated[Array, Buffer(("u2",), "cells")]
    cell: Annotated[Array, Buffer(("u2",), "cells 4")]  # x, y, width, height in the sheet


@dataclass(frozen=True)
class Gaze:
    """`gaze/{i}/{tower}/{layer}/{how}`: who looks where, one head or all heads of a layer together.

    how is the number of a head, `mean` over the heads, or `rollout`: from this layer back to the
    first (Abnar & Zuidema 2020). The strongest key of each patch gets a mark where its weight is at
    least 0.05: 1 an arrow, 2 a circle (itself), 3 a square (a class or register token); 0 none.
    """

    input: int
    tower: str
    layer: int
    how: str
    weights: Annotated[Array, Buffer(("u2",), "N M")]  # 65535ths
    strongest: Annotated[Array, Buffer(("u4",), "N")]
    mark: Annotated[Array, Buffer(("u1",), "N")]


# edges, rows, layers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Edges:
    """`edges/{i}/{tower}`: the strongest keys of every row of every head.
    `edges/{i}/{tower}/{layer}`: the same of one layer, which is there sooner.

    Rows R run over layer, head, query. With `index` they are the top k, strongest first. Without,
    the rows are complete, in the order of the keys, k = M. Weights are float32 as they are, or
    rounded: their square roots in 65535ths. Layers with fewer keys than k are padded with 0.
    """

    input: int
    tower: str
    layers: Sequence[int]
    heads: Sequence[int]  # H of each layer
    n: Sequence[int]  # queries of each layer
    m: Sequence[int]  # keys of each layer
    k: int
    index: Annotated[Array, Buffer(("u2", "u4"), "R k")] | None
    weight: Annotated[Array, Buffer(("u2", "f4"), "R k")]
    rest: Annotated[Array, Buffer(("u2",), "R")]  # weight of a row that is not listed, 65535ths
    row_sum: Annotated[Array, Buffer(("f4",), "R")] | None  # only where some row does not sum to 1


@dataclass(frozen=True)
class Rows:
    """`rows/{i}/{head}` or `rows/{i}/{head}/{first}-{last}`: exact weights of one head."""

    input: int
    head: str
    first: int  # the first row that is here
    weights: Annotated[Array, Buffer(("f4",), "N M")]


@dataclass(frozen=True)
class LayerWeights:
    """`layer/{i}/{tower}/{layer}`: exact weights of all heads of a layer."""

    input: int
    tower: str
    layer: int
    weights: Annotated[Array, Buffer(("f4",), "H N M")]


# vectors/{i}/{head} ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vectors:
    """`vectors/{i}/{head}`: what goes into one head's softmax, and the values that it moves.

    logits = scale · q kᵀ, then cap · tanh(logits / cap) where there is a soft cap, then + added;
    the softmax runs over the keys seen, and over the sink where there is one.
    """

    input: int
    head: str
    scale: float
    softcap: float | None
    sink: float | None
    mask: Literal["full", "causal", "given"]
    shared: Sequence[str]  # the heads that read the same key and value, this one too
    query: Annotated[Array, Buffer(("f4",), "N D")]
    key: Annotated[Array, Buffer(("f4",), "M D")]
    value: Annotated[Array, Buffer(("f4",), "M E")] | None
    added: Annotated[Array, Buffer(("f4",), "N|1 M")] | None
    seen: Annotated[Array, Buffer(("u1",), "N M")] | None  # where mask is "given"


# Maps ---------------------------------------------------------------------------------------------


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
class Progress:
    """`progress`: what is being computed, or how the last one ended."""

    state: Literal["idle", "running", "done", "stopped", "failed"]
    map: str = ""
    done: int = 0  # heads
    total: int = 0
    seconds_left: float | None = None
    error: str = ""


# Heads --------------------------------------------------------------------------------------------


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
class Alike:
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


@dataclass(frozen=True)
class Compared:
    """One model of a comparison, on the inputs that all of them read."""

    name: str
    way: str  # from this page to its own; empty: this is it, or it has none
    heads: Sequence[str]
    kind: Annotated[Array, Buffer(("u1",), "heads")]  # 255: none
    importance: Annotated[Array, Buffer(("f4",), "heads")]
    chosen: Annotated[Array, Buffer(("f4",), "heads")]  # importance in rows with a choice
    statistics: dict[str, float]  # the study's Table 1
    statistics_chosen: dict[str, float]
    counts: dict[str, int]  # kind → heads
    matched: Sequence[str]  # heads that are set against those of the others


@dataclass(frozen=True)
class Counterparts:
    """Heads of the first model against those of another: bits, 0 is the same."""

    nearest: Annotated[Array, Buffer(("u2",), "matched")]  # place in the other's matched heads
    away: Annotated[Array, Buffer(("f4",), "matched")]
    same: Annotated[Array, Buffer(("f4",), "matched")] | None  # from the head of its own name


@dataclass(frozen=True)
class Comparison:
    """`compare/{k,…}`: this model and those of the atlases k of `about` on shared inputs."""

    models: Sequence[Compared]  # this one first
    counterparts: Sequence[Counterparts]  # of the second model on
    kinds: Sequence[str]
    inputs: Annotated[Array, Buffer(("u4",), "shared models")]  # their numbers
    labels: Sequence[str]
    places: Annotated[Array, Buffer(("f4",), "heads 2")]  # matched heads of all; near is alike
    note: str


@dataclass(frozen=True)
class Reacted:
    """What every head of one model did with an input, drawn small."""

    tokens: int
    importance: Annotated[Array, Buffer(("f4",), "heads")]
    cells: Annotated[Array, Buffer(("u1",), "heads P P")]  # largest weight of each part, 255ths


@dataclass(frozen=True)
class Reaction:
    """`reaction/{k,…}/{place}`: the models of a comparison on one of their shared inputs."""

    models: Sequence[Reacted]


# First word of a path → what answers it.
ANSWERS: dict[str, type] = {
    "about": About,
    "input": InputInfo,
    "edges": Edges,
    "rows": Rows,
    "layer": LayerWeights,
    "vectors": Vectors,
    "map": MapPlaces,
    "points": MapPoints,
    "norms": MapNorms,
    "extra": MapExtra,
    "mean": MeanPattern,
    "progress": Progress,
    "heads": HeadScores,
    "alike": Alike,
    "card": HeadCard,
    "compare": Comparison,
    "reaction": Reaction,
    "picture": Picture,
    "thumbs": Thumbs,
    "gaze": Gaze,
}

# Deeds: sent as JSON (POST, or a message of the notebook), answered by a packet. ------------------


@dataclass(frozen=True)
class Compute:
    """`compute`: lay all heads out in the background; `progress` tells how far it is."""

    method: str
    dims: int


@dataclass(frozen=True)
class Cancel:
    """`cancel`: stop what is being computed; what is done so far is kept for the next time."""


@dataclass(frozen=True)
class Add:
    """`add`: let the live model read a new text."""

    text: str
    second: str | None = None


@dataclass(frozen=True)
class Added:
    """The new input; ask for `about`, input/{i}, edges/{i}/… and extra/{name}/{group}/{i}."""

    input: int
    seconds: float


# Word → what is sent and what is answered.
DEEDS: dict[str, tuple[type, type]] = {
    "compute": (Compute, Progress),
    "cancel": (Cancel, Progress),
    "add": (Add, Added),
}

# Picks are not sent as packets, they are mirrored: URL hash, widget trait, saved options. ---------


@dataclass(frozen=True)
class TokenPick:
    side: Literal["query", "key"]
    position: int


@dataclass(frozen=True)
class Picks:
    """What the person chose."""

    input: int = 0
    other: int | None = None  # a second input to compare with
    tower: str = ""
    heads: Sequence[str] = ()
    token: TokenPick | None = None
    pinned: bool = False
    layer: int = 0
    view: Literal["head", "model", "neuron", "heat"] = "head"
    hidden: dict[str, Sequence[int]] = field(default_factory=dict)  # stream → positions
    filter: Literal["all", "aa", "ab", "ba", "bb"] = "all"
    threshold: float = 0.0
    topk: int = 0  # 0: no limit
    words: bool = False
    theme: Literal["auto", "light", "dark"] = "auto"
    sort: bool = False
    valueWeighted: bool = False  # noqa: N815  as the front end writes it
    shownLayers: Sequence[int] | None = None  # noqa: N815  of the model view; None: all
    shownHeads: Sequence[int] | None = None  # noqa: N815
    tab: str = "text"  # one of the page's tabs; the page knows which it has
    map: str = ""  # empty: the first that is there
    mapHead: str | None = None  # noqa: N815  None: the matrix of all heads
    colour: str = "side"  # side, norm, or the name of a column
    scaledNorms: bool = False  # noqa: N815
    search: str = ""
    searchKind: Literal["exact", "prefix", "regex"] = "exact"  # noqa: N815
    camera: Sequence[float] | None = None  # None: all in sight
    lines: bool = True  # from each query to its strongest keys
    labels: bool = True
    sizeByNorm: bool = False  # noqa: N815
    palette: Literal["default", "safe"] = "default"
    score: str = "kind"  # what colours the picture of heads: kind, or a score
    across: str = "entropy"  # the two scores of the scatter; "alike" and "": the map of heads
    up: str = "importance-chosen"
    kinds: Sequence[str] = ()  # only heads of these kinds; empty: all
    order: str = "head"  # what the table of heads is sorted by; a minus before it: largest last
    versus: Sequence[int] = ()  # atlases of `about` that heads are compared with
    picture: int = -1  # which picture of the input the image view shows; -1: all side by side
    combine: Literal["head", "mean", "rollout"] = "head"
    overlay: bool = True  # heat over the picture for the picked patch
    arrows: bool = True  # the strongest key of each patch
    flows: bool = False  # everything at or above flowsFrom
    flowsFrom: float = 0.1  # noqa: N815
    patches: Literal["off", "border", "fill"] = "border"  # how the map draws points of patches


def pack(answer: Any) -> bytes:
    """The packet of one dataclass."""
    buffers: list[bytes] = []
    header = json.dumps(_plain(answer, buffers), ensure_ascii=False, allow_nan=False).encode()
    start = -(4 + len(header)) % 8
    return b"".join([struct.pack("<I", len(header)), header, bytes(start), *buffers])


def _plain(value: Any, buffers: list[bytes]) -> Any:
    if isinstance(value, np.ndarray):
        return _buffer(value, buffers)
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name), buffers) for f in fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(inner, buffers) for inner in value]
    return value


def _buffer(array: Array, buffers: list[bytes]) -> dict[str, Any]:
    small = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    at = sum(len(one) for one in buffers)
    raw = small.tobytes()
    buffers.append(raw + bytes(-len(raw) % 8))
    return {"at": at, "type": small.dtype.str[1:], "shape": list(array.shape)}


def unpack(packet: bytes) -> dict[str, Any]:
    """The header of a packet with its arrays in place; what the browser does, for tests."""
    (length,) = struct.unpack_from("<I", packet)
    header = json.loads(packet[4 : 4 + length])
    start = 4 + length + -(4 + length) % 8

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"at", "type", "shape"}:
            count = int(np.prod(value["shape"]))
            flat = np.frombuffer(packet, "<" + value["type"], count, start + value["at"])
            return flat.reshape(value["shape"])
        return {name: filled(inner) for name, inner in value.items()}

    found: dict[str, Any] = filled(header)
    return found
