"""What is to be captured, and how? All of it is data: JSON both ways, no tensors.

Whoever has the plan, the model and the inputs of one shard can run that shard, in any order and on
any machine: nothing depends on the shards before it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from attention_atlas.record.places.streams import Ends
from attention_atlas.record.watch.layers import TowerKey
from attention_atlas.record.write.options import Capturing

LayerKey = tuple[TowerKey, int]  # tower and layer number, as the recorder finds them


@dataclass(frozen=True)
class PlannedLayer:
    """One attention layer: where it sits in the model, and what it is called in the atlas."""

    path: str  # of the tower's model
    cross: bool
    number: int
    module: str
    visit: int
    tower: str
    queries: str  # stream
    keys: str
    exact: bool

    @property
    def key(self) -> LayerKey:
        return (self.path, self.cross), self.number

    @property
    def streams(self) -> tuple[str, str]:
        return self.queries, self.keys


@dataclass(frozen=True)
class CapturePlan:
    """How a model is captured, and which inputs make which shard."""

    capturing: Capturing
    way: str
    fast: bool
    alone: bool  # inputs run one at a time
    bound: float  # error that the model's precision explains
    layers: tuple[PlannedLayer, ...]
    shards: tuple[tuple[int, int], ...]  # first input, and the one after the last
    columns: tuple[str, ...] = ()  # of the person's table
    fine: tuple[str, ...] = ()  # modules known to be too coarse in fp16
    trusted: Mapping[str, bool] = field(default_factory=dict)  # towers whose patches sit as thought
    loading: Mapping[str, Any] | None = None  # name and options; None for a model given live

    @cached_property
    def names(self) -> dict[TowerKey, str]:
        """Name the towers."""
        return {(layer.path, layer.cross): layer.tower for layer in self.layers}

    @cached_property
    def ends(self) -> dict[LayerKey, Ends]:
        """Name the streams of every layer's queries and keys."""
        return {layer.key: Ends(layer.queries, layer.keys) for layer in self.layers}

    @cached_property
    def exact(self) -> set[LayerKey]:
        """List the layers that are stored."""
        return {layer.key for layer in self.layers if layer.exact}

    def to_json(self) -> str:
        """Write the plan as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "CapturePlan":
        """Read a plan that `to_json` wrote."""
        raw = json.loads(text)
        capturing = {**raw["capturing"], "keep": tuple(raw["capturing"]["keep"])}
        read = {
            "capturing": Capturing(**capturing),
            "layers": tuple(PlannedLayer(**layer) for layer in raw["layers"]),
            "shards": tuple((first, end) for first, end in raw["shards"]),
            "columns": tuple(raw["columns"]),
            "fine": tuple(raw["fine"]),
        }
        return cls(**{**raw, **read})
