"""What can colour the points of a map?

Every column has one number or one name per token: from its place and text, or from the person's own
tables. A list in a column of the inputs, with one item per word of the input, is read word by word:
so part of speech, or any label of words, can colour the points too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.names.token_text import MARKS, token_kind
from attention_atlas.page.wire import maps as wire
from attention_atlas.page.wire.constants import UNIT

MOST_NAMES = 200  # a column with more names cannot be shown in colours
_OWN_OF_INPUTS = {
    "input", "kind", "text", "second", "source", "boundary", "prompt", "truncated", "images",
    "picture_checksums",
}  # fmt: skip
_OWN_OF_TOKENS = {
    "token", "input", "stream", "position", "text", "id", "special", "start", "end", "segment",
    "word", "row", "column", "image", "left", "top", "right", "bottom",
}  # fmt: skip


@dataclass(frozen=True)
class Points:
    """The tokens to colour, with the inputs and counts that their colours need."""

    tokens: pd.DataFrame  # one row per point
    shown: npt.NDArray[Any]  # texts of the tokens, as people read them
    inputs: pd.DataFrame
    lengths: npt.NDArray[np.int64]  # tokens in the stream of each point's input
    counts: pd.Series  # how often each text occurs in the whole atlas

    def of_input(self, name: str) -> npt.NDArray[Any]:
        """Return a column of the inputs with one value per point."""
        values = self.inputs.set_index("input")[name]
        return np.asarray(values.reindex(self.tokens["input"]).to_numpy())


@dataclass(frozen=True)
class Column:
    """One value per point before packing; NaN or None if a point has none."""

    name: str
    label: str
    values: npt.NDArray[Any]
    scale: Literal["linear", "log"] = "linear"
    span: tuple[float, float] | None = None  # None: from the smallest to the largest

    @property
    def is_number(self) -> bool:
        return self.values.dtype.kind in "iuf"


def colour_columns(
    points: Points, like: "Sequence[wire.NumberColumn | wire.NameColumn] | None" = None
) -> "list[wire.NumberColumn | wire.NameColumn]":
    """Return all columns; with `like`, in the ranges and with the names of those columns."""
    known = None if like is None else {column.name: column for column in like}
    columns = [column for make in _MADE for column in make(points)]
    taken = {column.name for column in columns}
    columns += [column for column in _persons(points) if column.name not in taken]
    if known is None:
        return [pack_column(column) for column in columns if _tells(column)]
    return [pack_column(column, known[column.name]) for column in columns if column.name in known]


# From place and text ------------------------------------------------------------------------


def _place(points: Points) -> list[Column]:
    position = points.tokens["position"].to_numpy(np.float64)
    fifths = np.array(list("01234"), object)
    return [
        Column("position", "position in the input", position / np.maximum(points.lengths - 1, 1)),
        Column("mod5", "position modulo 5", fifths[(position % 5).astype(int)]),
    ]


def _text(points: Points) -> list[Column]:
    texts = points.tokens["text"]
    patches = (points.tokens["row"].to_numpy() >= 0).any()
    if patches and (points.tokens["id"].to_numpy() < 0).all():
        return []  # patches are named by places, not words
    often = texts.map(points.counts).fillna(0).to_numpy(np.float64)
    special = points.tokens["special"].to_numpy(bool)
    which, distinct = pd.factorize(points.shown)  # equal texts are read once
    letters = np.array([len(text.strip(MARKS)) for text in distinct], np.float64)[which]
    letters[special] = np.nan
    kinds = np.array([token_kind(text) for text in distinct], object)[which]
    kinds[special] = "special"
    return [
        Column("frequency", "times this token occurs", often, "log"),
        Column("length", "letters of the token", letters),
        Column("sentence_length", "tokens of the input", points.lengths.astype(np.float64)),
        Column("punctuation", "kind of token", kinds),
    ]


def _where_there(points: Points) -> list[Column]:
    """Return the text of a pair, and row and column of a patch, if the atlas has any."""
    segment = points.tokens["segment"].to_numpy()
    columns = []
    if (segment == 1).any():
        names = np.array(["neither", "first text", "second text"], object)
        columns.append(Column("segment", "which text of the pair", names[segment + 1]))
    for name in ("row", "column"):
        number = points.tokens[name].to_numpy(np.float64)
        if (number >= 0).any():
            columns.append(
                Column(name, f"{name} of the patch", np.where(number < 0, np.nan, number))
            )
    return columns


def _seen(points: Points) -> list[Column]:
    """Return the mean colour of a patch, if there are pictures."""
    spans = {"brightness": (0.0, 1.0), "hue": (0.0, 360.0), "saturation": (0.0, 1.0)}
    return [
        Column(name, f"{name} of the patch", points.tokens[name].to_numpy(np.float64), span=span)
        for name, span in spans.items()
        if name in points.tokens
    ]


_MADE: tuple[Callable[[Points], list[Column]], ...] = (_place, _text, _where_there, _seen)


# From the person's own tables --------------------------------------------------------------------


def _persons(points: Points) -> list[Column]:
    columns = [
        Column(str(name), str(name), _plain(points.tokens[name].to_numpy()))
        for name in points.tokens.columns
        if name not in _OWN_OF_TOKENS
    ]
    for name in points.inputs.columns:
        if name in _OWN_OF_INPUTS:
            continue
        values = points.of_input(name)
        if any(isinstance(value, list | np.ndarray) for value in values):
            values = _by_word(values, points.tokens["word"].to_numpy(), points.tokens["input"])
        columns.append(Column(str(name), str(name), _plain(values)))
    return columns


def _by_word(lists: npt.NDArray[Any], word: npt.NDArray[Any], input: pd.Series) -> npt.NDArray[Any]:
    """Return one item per token, of its word; None if items and words differ in number."""
    most = pd.Series(word).groupby(input.to_numpy()).transform("max").to_numpy()
    labels = np.full(len(lists), None, object)
    for row, (items, number, last) in enumerate(zip(lists, word, most, strict=True)):
        if number >= 0 and isinstance(items, list | np.ndarray) and len(items) == last + 1:
            labels[row] = items[number]
    return labels


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers as float64, anything else as texts or None."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    known = [value for value in values if value is not None and value == value]
    if known and all(_is_number(value) for value in known):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    texts = [None if value is None or value != value else str(value) for value in values]
    return np.array(texts, object)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _tells(column: Column) -> bool:
    """Tell whether a column can be shown as colours."""
    if column.is_number:
        return bool(np.isfinite(column.values).any())
    return 1 <= len({value for value in column.values if value is not None}) <= MOST_NAMES


# As they are sent --------------------------------------------------------------------------------


def pack_column(
    column: Column, like: "wire.NumberColumn | wire.NameColumn | None" = None
) -> "wire.NumberColumn | wire.NameColumn":
    """Pack a column as it is sent; with the ranges and names of `like`, if given."""
    if column.is_number:
        return _numbers(column, like if isinstance(like, wire.NumberColumn) else None)
    return _names(column, like if isinstance(like, wire.NameColumn) else None)


def _numbers(column: Column, like: wire.NumberColumn | None) -> wire.NumberColumn:
    values = np.where(np.isfinite(column.values), column.values, np.nan)
    known = values[~np.isnan(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    low, high = (like.low, like.high) if like is not None else column.span or (low, high)
    across = np.clip((values - low) / (high - low if high > low else 1.0), 0, 1)
    packed = np.where(np.isnan(across), UNIT, np.rint(across * (UNIT - 1))).astype(np.uint16)
    whole = bool((known == np.rint(known)).all())
    return wire.NumberColumn(
        column.name, column.label, "number", column.scale, whole, low, high, packed
    )


def _names(column: Column, like: wire.NameColumn | None) -> wire.NameColumn:
    known = sorted({value for value in column.values if value is not None})
    names = list(like.names) if like is not None else known
    numbers = {name: number for number, name in enumerate(names)}
    none = np.iinfo(np.uint8).max
    packed = np.array([numbers.get(value, none) for value in column.values], np.uint8)
    return wire.NameColumn(column.name, column.label, "name", names, packed)
