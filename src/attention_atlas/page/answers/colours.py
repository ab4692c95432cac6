"""What can colour the points of a map?

Every column is one number or one name a token: what its place and text tell, and whatever the
person's own tables say. A list in a column of the inputs, as long as the input has words, is read
word by word: so part of speech, or any label of words, can colour too.
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

MOST_NAMES = 200  # a column with more names than this tells inputs apart, not kinds
_OWN_OF_INPUTS = {
    "input", "kind", "text", "second", "source", "boundary", "prompt", "truncated", "images",
}  # fmt: skip
_OWN_OF_TOKENS = {
    "token", "input", "stream", "position", "text", "id", "special", "start", "end", "segment",
    "word", "row", "column", "image", "left", "top", "right", "bottom",
}  # fmt: skip


@dataclass(frozen=True)
class Points:
    """Tokens to be coloured, and what they are compared with."""

    tokens: pd.DataFrame  # a row a point
    shown: npt.NDArray[Any]  # their texts, as people read them
    inputs: pd.DataFrame
    lengths: npt.NDArray[np.int64]  # tokens in the stream of each point's input
    counts: pd.Series  # how often each text occurs in the whole atlas

    def of_input(self, name: str) -> npt.NDArray[Any]:
        """A column of the inputs, a value a point."""
        values = self.inputs.set_index("input")[name]
        return np.asarray(values.reindex(self.tokens["input"]).to_numpy())


@dataclass(frozen=True)
class Column:
    """Values of points before they are packed; NaN or None where there is none."""

    name: str
    label: str
    values: npt.NDArray[Any]
    scale: Literal["linear", "log"] = "linear"
    span: tuple[float, float] | None = None  # unset: from the least to the greatest

    @property
    def is_number(self) -> bool:
        return self.values.dtype.kind in "iuf"


def colour_columns(
    points: Points, like: "Sequence[wire.NumberColumn | wire.NameColumn] | None" = None
) -> "list[wire.NumberColumn | wire.NameColumn]":
    """All columns; with `like` in the ranges and with the names of those."""
    known = None if like is None else {one.name: one for one in like}
    columns = [column for make in _MADE for column in make(points)]
    taken = {column.name for column in columns}
    columns += [column for column in _persons(points) if column.name not in taken]
    if known is None:
        return [_packed(column) for column in columns if _tells(column)]
    return [_packed(column, known[column.name]) for column in columns if column.name in known]


# What place and text tell ------------------------------------------------------------------------


def _place(points: Points) -> list[Column]:
    position = points.tokens["position"].to_numpy(np.float64)
    return [
        Column("position", "position in the input", position / np.maximum(points.lengths - 1, 1)),
        Column("mod5", "position modulo 5", (position % 5).astype(int).astype(str).astype(object)),
    ]


def _text(points: Points) -> list[Column]:
    texts = points.tokens["text"]
    patches = (points.tokens["row"].to_numpy() >= 0).any()
    if patches and (points.tokens["id"].to_numpy() < 0).all():
        return []  # their names are places, not words
    often = texts.map(points.counts).fillna(0).to_numpy(np.float64)
    special = points.tokens["special"].to_numpy(bool)
    letters = np.array([len(text.strip(MARKS)) for text in points.shown], np.float64)
    letters[special] = np.nan
    kinds = [
        "special" if flag else token_kind(text)
        for text, flag in zip(points.shown, special, strict=True)
    ]
    return [
        Column("frequency", "times this token occurs", often, "log"),
        Column("length", "letters of the token", letters),
        Column("sentence_length", "tokens of the input", points.lengths.astype(np.float64)),
        Column("punctuation", "kind of token", np.array(kinds, object)),
    ]


def _where_there(points: Points) -> list[Column]:
    """Second text of a pair, row and column of a patch: only where the atlas has any."""
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
    """The mean colour of a patch, where there are pictures."""
    spans = {"brightness": (0.0, 1.0), "hue": (0.0, 360.0), "saturation": (0.0, 1.0)}
    return [
        Column(name, f"{name} of the patch", points.tokens[name].to_numpy(np.float64), span=span)
        for name, span in spans.items()
        if name in points.tokens
    ]


_MADE: tuple[Callable[[Points], list[Column]], ...] = (_place, _text, _where_there, _seen)


# What the person's own tables tell ---------------------------------------------------------------


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
        if any(isinstance(one, list | np.ndarray) for one in values):
            values = _by_word(values, points.tokens["word"].to_numpy(), points.tokens["input"])
        columns.append(Column(str(name), str(name), _plain(values)))
    return columns


def _by_word(lists: npt.NDArray[Any], word: npt.NDArray[Any], input: pd.Series) -> npt.NDArray[Any]:
    """An item a word; nothing where there are not as many items as the input has words."""
    most = pd.Series(word).groupby(input.to_numpy()).transform("max").to_numpy()
    found = np.full(len(lists), None, object)
    for row, (items, number, last) in enumerate(zip(lists, word, most, strict=True)):
        if number >= 0 and isinstance(items, list | np.ndarray) and len(items) == last + 1:
            found[row] = items[number]
    return found


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers as float64, all else as texts or None."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    there = [one for one in values if one is not None and one == one]
    if there and all(_is_number(one) for one in there):
        return np.array([np.nan if one is None else one for one in values], np.float64)
    texts = [None if one is None or one != one else str(one) for one in values]
    return np.array(texts, object)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _tells(column: Column) -> bool:
    """Whether it tells any points apart in a way that can be shown."""
    if column.is_number:
        return bool(np.isfinite(column.values).any())
    return 1 <= len({one for one in column.values if one is not None}) <= MOST_NAMES


# As they travel ----------------------------------------------------------------------------------


def _packed(
    column: Column, like: "wire.NumberColumn | wire.NameColumn | None" = None
) -> "wire.NumberColumn | wire.NameColumn":
    if column.is_number:
        return _numbers(column, like if isinstance(like, wire.NumberColumn) else None)
    return _names(column, like if isinstance(like, wire.NameColumn) else None)


def _numbers(column: Column, like: wire.NumberColumn | None) -> wire.NumberColumn:
    values = np.where(np.isfinite(column.values), column.values, np.nan)
    there = values[~np.isnan(values)]
    low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 0.0)
    low, high = (like.low, like.high) if like is not None else column.span or (low, high)
    across = np.clip((values - low) / (high - low if high > low else 1.0), 0, 1)
    packed = np.where(np.isnan(across), UNIT, np.rint(across * (UNIT - 1))).astype(np.uint16)
    whole = bool((there == np.rint(there)).all())
    return wire.NumberColumn(
        column.name, column.label, "number", column.scale, whole, low, high, packed
    )


def _names(column: Column, like: wire.NameColumn | None) -> wire.NameColumn:
    there = sorted({one for one in column.values if one is not None})
    names = list(like.names) if like is not None else there
    number = {name: at for at, name in enumerate(names)}
    none = np.iinfo(np.uint8).max
    packed = np.array([number.get(one, none) for one in column.values], np.uint8)
    return wire.NameColumn(column.name, column.label, "name", names, packed)
