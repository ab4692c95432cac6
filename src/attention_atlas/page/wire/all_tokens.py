"""What does the Map tab get of all tokens of a head, where its map shows a sample of them?

A token is a row of its stream, in token order. Nothing is sent twice for queries and keys of one
stream, and a column is sent when it is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from attention_atlas.page.wire.maps import NameColumn, NumberColumn
from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class AllInfo:
    """`all/{name}/{head}`: how many tokens a head has, and whether all are placed on a map."""

    queries: int
    keys: int
    placed: bool
    can_place: bool  # the page may send `place`
    seconds: float  # about how long that takes
    streams: Sequence[str]  # of its queries and of its keys


@dataclass(frozen=True)
class AllPoints:
    """`all_places/{name}/{head}`: places of all queries of a head, then of all its keys."""

    queries: int
    places: Annotated[Array, Buffer(("u2",), "P dims")]  # 0 to 65535 across the box
    box: Annotated[Array, Buffer(("f4",), "2 dims")]  # coordinates of 0 and 65535


@dataclass(frozen=True)
class AllTokens:
    """`all_tokens/{stream}`: the tokens of a stream; input i has starts[i] to starts[i + 1]."""

    starts: Annotated[Array, Buffer(("u4",), "inputs + 1")]
    texts: Sequence[str]  # all distinct tokens, as shown
    text: Annotated[Array, Buffer(("u2", "u4"), "N")]  # index in `texts`


@dataclass(frozen=True)
class AllColumn:
    """`all_column/{name}/{group}/{column}`: a column of all queries, then of all keys.

    Where both are of one stream its tokens are sent once. Ranges and names are those of the map's
    column, so that one legend is right for both.
    """

    column: NumberColumn | NameColumn
