"""What is there to see? The packet `about` and what it lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from attention_atlas.page.wire.image import ThumbSheet
from attention_atlas.page.wire.lab import Predicts
from attention_atlas.page.wire.maps import Estimate, MapInfo


@dataclass(frozen=True)
class InputLine:
    """One input as a list shows it."""

    number: int
    label: str
    kind: str
    second: bool  # whether it has a second text or a target
    tokens: int = 0  # of its longest stream; more than LONG_INPUT: ask for tiles


@dataclass(frozen=True)
class LayerInfo:
    """One attention layer; `layer` is its number in the model."""

    layer: int
    heads: int
    groups: int  # head h reads key and value group h // (heads / groups)
    width: int
    value_width: int
    has_vectors: bool
    queries: str  # stream names; they differ from the tower's if the model pools between layers
    keys: str


@dataclass(frozen=True)
class TowerInfo:
    """A run of attention layers."""

    name: str
    role: Literal["self", "causal", "cross"]
    queries: str  # the stream of tokens that look
    keys: str  # the stream of tokens that are looked at
    depth: int  # number of all layers, also those without attention
    layers: Sequence[LayerInfo]


@dataclass(frozen=True)
class Neighbour:
    """Another atlas of the same server; it can be compared with this one."""

    address: str  # relative to the address of this page
    title: str
    inputs: int


@dataclass(frozen=True)
class StoryStep:
    """One step of a story through the page."""

    title: str
    text: str
    picks: str  # a state of the page, as its address writes it after #


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
    no_maps: str = ""  # why there are no maps and none can be made; else empty
    read_only: bool = False  # the server shows what is there and does nothing else
    can_compute: bool = False  # the page may send `compute`
    no_compute: str = ""  # why nothing can be computed; else empty
    estimates: Sequence[Estimate] = ()  # one per map that can be computed
    can_add: bool = False  # the page may send `add`: there is a live model
    added: Sequence[int] = ()  # numbers of added inputs, which are not in the folder
    can_edit: bool = False  # the page may send `edit` and ask for `edit_receipt`
    no_edits: str = ""  # why nothing can be edited, and what to do; else empty
    predicts: Predicts = ""  # of the live model; empty: nothing, or it is not loaded yet
    atlases: Sequence[Neighbour] = ()
    can_measure: bool = False  # the page may ask for `heads`, `alike` and `card/{head}`
    pictures: bool = False  # inputs have pictures: the page may ask for `picture/{i}/{image}`
    patches: Sequence[str] = ()  # streams whose tokens have places in a picture
    no_moved: str = ""  # why only weights can be shown, not what is moved; else empty
    output_line: str = ""  # of the receipt: whether the heads add up to their layers
    story: Sequence[StoryStep] = ()  # leads through the first minute; empty: no story
    thumbs: Sequence[ThumbSheet] = ()  # from coarse to fine; empty: no pictures, or too many
