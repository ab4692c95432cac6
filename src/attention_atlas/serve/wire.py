"""What crosses from Python to the browser?

A path is asked for and one packet comes back:

    u4 little-endian   length of the header
    header             UTF-8 JSON: the fields of one dataclass below
    zeros              up to a multiple of 8
    buffers            raw little-endian numbers, each from a multiple of 8

An array in the header is `{"at": offset in the buffers, "type": "f4", "shape": [N, M]}`. This file
is the one schema; `python -m attention_atlas.serve.types` writes its TypeScript.
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
    """One sequence of tokens of an input."""

    name: str
    tokens: Sequence[TokenInfo]


@dataclass(frozen=True)
class InputInfo:
    """`input/{i}`: one input and its tokens."""

    number: int
    text: str
    second: str | None
    boundary: int  # the first token of the second text in its stream, -1 where there is none
    streams: Sequence[Stream]


# edges, rows, layers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Edges:
    """`edges/{i}/{tower}`: the strongest keys of every row of every head.

    Rows R run over layer, head, query. With `index` they are the top k, strongest first, weights
    in 65535ths. Without, the rows are complete: float32 weights in the order of the keys, k = M.
    Layers with fewer keys than k are padded with weight 0.
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


# First word of a path → what answers it.
ANSWERS: dict[str, type] = {
    "about": About,
    "input": InputInfo,
    "edges": Edges,
    "rows": Rows,
    "layer": LayerWeights,
    "vectors": Vectors,
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
