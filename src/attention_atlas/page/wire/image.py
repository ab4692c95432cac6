"""What does the Image tab get? Pictures, and where heads look on them."""

from dataclasses import dataclass
from typing import Annotated

from attention_atlas.page.wire.packing import Array, Buffer


@dataclass(frozen=True)
class ThumbSheet:
    """One size of the sheet with all pictures, `thumbs/{level}`."""

    side: int  # pixels of a cell
    width: int  # of the sheet
    height: int


@dataclass(frozen=True)
class PictureInfo:
    """One picture of an input, turned upright: its original size and its file name."""

    width: int
    height: int
    name: str


@dataclass(frozen=True)
class Picture:
    """`picture/{i}/{image}`: one picture, turned upright, on white, at most 1024 pixels a side."""

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
    """`gaze/{i}/{tower}/{layer}/{how}`: where one head, or all heads of a layer together, look.

    how is the number of a head, `mean` over the heads, or `rollout`: from this layer back to the
    first (Abnar & Zuidema 2020). The strongest key of each patch gets a mark where its weight is at
    least 0.05: 1 an arrow, 2 a circle (itself), 3 a square (a class or register token); 0 none.
    """

    input: int
    tower: str
    layer: int
    how: str
    weights: Annotated[Array, Buffer(("u2", "f4"), "N M")]  # 65535ths; shares: f4
    strongest: Annotated[Array, Buffer(("u4",), "N")]
    mark: Annotated[Array, Buffer(("u1",), "N")]
