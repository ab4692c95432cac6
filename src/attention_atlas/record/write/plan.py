"""What is captured, and how? A plan is data: it is written as JSON and holds no tensors.

The plan, the model and the inputs of one shard are enough to run that shard, in any order and on
any machine: no shard depends on another.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from attention_atlas.record.places.streams import Ends
from attention_atlas.record.watch.layers import TowerKey
from attention_atlas.record.write.options import Capturing, score_rows_of
from attention_atlas.store.manifest import Tower, towers_from

LayerKey = tuple[TowerKey, int]  # tower and layer number, as the recorder finds them


@dataclass(frozen=True)
class PlannedLayer:
    """One attention layer: its place in the model, and its name in the atlas."""

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
    columns: tuple[str, ...] = ()  # of the user's table
    fine: tuple[str, ...] = ()  # modules for which fp16 is too coarse
    cut: tuple[int, ...] = ()  # inputs of which only the first tokens were tried
    trusted: Mapping[str, bool] = field(default_factory=dict)  # towers: patches are as expected
    loading: Mapping[str, Any] | None = None  # name and options; None: the model is an object
    editing: Mapping[str, Any] | None = None  # edits and the anatomy of the model, as JSON
    final: tuple[str, str] | None = None  # path of the final norm, and the stream that it reads
    kept: tuple[int, ...] | None = None  # inputs whose vectors are kept; None: all
    towers: tuple[Tower, ...] = ()  # as in the manifest, where shards are measured

    @cached_property
    def names(self) -> dict[TowerKey, str]:
        """Return the name of each tower."""
        return {(layer.path, layer.cross): layer.tower for layer in self.layers}

    @cached_property
    def ends(self) -> dict[LayerKey, Ends]:
        """Return the streams of each layer's queries and keys."""
        return {layer.key: Ends(layer.queries, layer.keys) for layer in self.layers}

    @property
    def score_rows(self) -> int:
        """Return of how many rows of each input heads are measured while capturing."""
        return score_rows_of(self.capturing.score_rows, self.shards[-1][1])

    @cached_property
    def exact(self) -> set[LayerKey]:
        """Return the layers that are stored."""
        return {layer.key for layer in self.layers if layer.exact}

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "CapturePlan":
        """Return the plan that `to_json` wrote."""
        raw = json.loads(text)
        capturing = {**raw["capturing"], "keep": tuple(raw["capturing"]["keep"])}
        read = {
            "capturing": Capturing(**capturing),
            "layers": tuple(PlannedLayer(**layer) for layer in raw["layers"]),
            "shards": tuple((first, end) for first, end in raw["shards"]),
            "columns": tuple(raw["columns"]),
            "fine": tuple(raw["fine"]),
            "cut": tuple(raw["cut"]),
            "final": None if raw["final"] is None else tuple(raw["final"]),
            "kept": None if raw["kept"] is None else tuple(raw["kept"]),
            "towers": towers_from(raw["towers"]),
        }
        return cls(**{**raw, **read})
