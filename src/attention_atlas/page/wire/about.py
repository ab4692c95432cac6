"""What is there to see? The packet `about` and what it lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from attention_atlas.page.wire.image import ThumbSheet
from attention_atlas.page.wire.maps import Estimate, MapInfo


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
class Neighbour:
    """Another atlas that the same server serves; mixed with this one only to be compared."""

    address: str  # relative to this page's own
    title: str
    inputs: int


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
