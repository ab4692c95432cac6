"""What does the Text tab get? The tokens of one input, its weights and its vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from attention_atlas.page.wire.image import PictureInfo
from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class TokenColumns:
    """The tokens of a stream as columns; numbers are -1 where there is none.

    Equal tokens are listed once (V of them); `entry` says which of these each of N tokens is.
    """

    texts: Sequence[str]  # V, as shown
    raws: Sequence[str]  # V, as the tokenizer writes it
    ids: Annotated[Array, Buffer(("i4",), "V")]
    special: Annotated[Array, Buffer(("u1",), "V")]
    punctuation: Annotated[Array, Buffer(("u1",), "V")]
    entry: Annotated[Array, Buffer(("u2", "u4"), "N")]
    segment: Annotated[Array, Buffer(("i2",), "N")]  # 0 the text, 1 the second, -1 neither
    word: Annotated[Array, Buffer(("i4",), "N")]
    row: Annotated[Array, Buffer(("i4",), "N")] | None  # of a patch; None: there are no patches
    column: Annotated[Array, Buffer(("i4",), "N")] | None
    generated: int  # tokens from this position on were generated; N: none


@dataclass(frozen=True)
class Stream:
    """One sequence of tokens of an input.

    Boxes are left, top, right, bottom as fractions of the original picture. They may reach a
    little beyond it; they are NaN for tokens that show no part of it: words, class and register
    tokens, patches of padding.
    """

    name: str
    tokens: TokenColumns
    image: Annotated[Array, Buffer(("i2",), "N")] | None = None  # which picture; -1: none
    box: Annotated[Array, Buffer(("f4",), "N 4")] | None = None


@dataclass(frozen=True)
class InputInfo:
    """`input/{i}`: one input and its tokens."""

    number: int
    text: str
    second: str | None
    boundary: int  # the first token of the second text in its stream, -1 where there is none
    streams: Sequence[Stream]
    pictures: Sequence[PictureInfo] = ()


@dataclass(frozen=True)
class Edges:
    """`edges/{i}/{tower}`: the strongest keys of every row of every head.
    `edges/{i}/{tower}/{layer}`: the same for one layer, which is sent sooner.
    `edges/{i}/{tower}/{layer}/{rows}/{columns}`: of a window, as in edges/0/decoder/3/0-511/0-511.

    Rows R run over layer, head, query. With `index` each row has its top k keys, strongest first;
    without, all keys in order, k = M. Numbers are exact float32, or rounded: weights are
    (value / 65535)², what is moved is (value / 65535)² · peak of its row, and contributions, which
    have signs, are ± (value / 32767)² · peak of their row. Layers with fewer keys than k are padded
    with 0. In a window n and m count its rows and columns, `index` starts with its first column,
    and `rest` of weights is all weight outside of it too.
    """

    input: int
    tower: str
    layers: Sequence[int]
    heads: Sequence[int]  # H of each layer
    n: Sequence[int]  # queries of each layer
    m: Sequence[int]  # keys of each layer
    k: int
    index: Annotated[Array, Buffer(("u2", "u4"), "R k")] | None
    weight: Annotated[Array, Buffer(("u2", "i2", "f4"), "R k")]
    # Weight of the keys that are left out, in 65535ths; the sum of their sizes if not weights.
    rest: Annotated[Array, Buffer(("u2", "f4"), "R")]
    row_sum: Annotated[Array, Buffer(("f4",), "R")] | None  # only if some row does not sum to 1
    first_row: int = 0  # where the window starts
    first_column: int = 0
    # Of what is moved and of contributions: shares of the layer times its heads, not summing to 1;
    # contributions may be below zero.
    of: Literal["weights", "moved", "contribution"] = "weights"
    peak: Annotated[Array, Buffer(("f4",), "R")] | None = None  # only if rounded and not weights


@dataclass(frozen=True)
class RowWeights:
    """`rows/{i}/{head}` or `rows/{i}/{head}/{first}-{last}`: exact weights of one head."""

    input: int
    head: str
    first: int  # number of the first row sent
    weights: Annotated[Array, Buffer(("f4",), "N M")]


@dataclass(frozen=True)
class LayerWeights:
    """`layer/{i}/{tower}/{layer}`: exact weights of all heads of a layer."""

    input: int
    tower: str
    layer: int
    weights: Annotated[Array, Buffer(("f4",), "H N M")]


@dataclass(frozen=True)
class Sink:
    """A key that is looked at far more than others, whatever is asked."""

    position: int
    text: str
    kind: str  # first token, special token, punctuation, patch at the border, …
    layers: Sequence[int]  # in which it is one, for the mean of their heads
    share: float  # of the attention, in the layer where it gets most


@dataclass(frozen=True)
class Sinks:
    """`sinks/{i}/{tower}`: the sinks of an input."""

    input: int
    tower: str
    stream: str  # of the keys
    sinks: Sequence[Sink]


@dataclass(frozen=True)
class LogitAdds:
    """`logit/{i}/{position}/{token}/{against?}`: what heads and tokens add to a logit.

    token is a number in the vocabulary or of a class, or `next`; position may be `last`. With
    `against` it is the difference of two logits. The scale of the final norm is held.
    """

    input: int
    position: int  # whose prediction it is
    token: int
    text: str
    against: int | None
    against_text: str
    queries: str  # the stream of the position
    classes: Sequence[str] | None  # of a classifier
    heads: Sequence[str]  # R
    keys: Sequence[str]  # the stream that each head looks at
    adds: Annotated[Array, Buffer(("f4",), "R M")]  # padded with 0 where a head has fewer keys
    missing: Sequence[str]  # layers that do not add to this stream


@dataclass(frozen=True)
class Vectors:
    """`vectors/{i}/{head}`: what goes into one head's softmax, and the values that it moves.

    logits = scale · q kᵀ, then cap · tanh(logits / cap) if there is a soft cap, then + added;
    the softmax runs over the keys seen, and over the sink if there is one.
    """

    input: int
    head: str
    scale: float
    softcap: float | None
    sink: float | None
    mask: Literal["full", "causal", "given"]
    shared: Sequence[str]  # the heads that read the same key and value, including this one
    query: Annotated[Array, Buffer(("f4",), "N D")]
    key: Annotated[Array, Buffer(("f4",), "M D")]
    value: Annotated[Array, Buffer(("f4",), "M E")] | None
    added: Annotated[Array, Buffer(("f4",), "N|1 M")] | None
    seen: Annotated[Array, Buffer(("u1",), "N M")] | None  # only if mask is "given"
