"""What does the page get of the few directions along which a head's queries and keys meet?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from attention_atlas.page.wire.maps import NumberColumn
from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class DirectionEnd:
    """Tokens at one end of a direction, strongest first, with their mean coordinates."""

    side: Literal["query", "key"]
    sign: int  # 1 or -1
    tokens: Sequence[str]
    values: Sequence[float]


@dataclass(frozen=True)
class DirectionEnds:
    """Both ends of one direction, of queries and of keys."""

    ends: Sequence[DirectionEnd]


@dataclass(frozen=True)
class HeadDirections:
    """`directions/{head}`: the directions that carry a head's attention, most telling first.

    a = q · query, b = (k − mean_key) · key; q·k = Σ a b + q·mean_key.
    """

    head: str
    count: int  # directions shown; the others are the rest
    query: Annotated[Array, Buffer(("f4",), "D D")]
    key: Annotated[Array, Buffer(("f4",), "D D")]
    mean_key: Annotated[Array, Buffer(("f4",), "D")]
    share: Annotated[Array, Buffer(("f4",), "D")]
    kept: Annotated[Array, Buffer(("f4",), "K")]  # attention that the first 0, 1 … give alone
    telling: Sequence[DirectionEnds]  # one per direction shown


@dataclass(frozen=True)
class DirectionColumn:
    """`along/{map}/{head}/{direction}`: where the points of a map lie along a direction of a head.

    Queries first, as on the map: a of a query, b of a key.
    """

    map: str
    head: str
    direction: int
    column: NumberColumn
