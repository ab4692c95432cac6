"""What does the manifest of an atlas hold?

`atlas.json`, as frozen dataclasses: the model, its towers and layers, the receipt, the shards with
their checksums. It is written last, so a folder that has one is whole.
"""

import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.manifest_check import check_manifest
from attention_atlas.store.typed import decode

FORMAT = 2  # 1 had no seals
NAME = "atlas.json"
GIVEN = "given"  # the way of a receipt of weights that another tool made
CACHE = "cache"  # the way of a receipt of vectors of another tool, compared with its own weights
SHARE = 0.1  # of a layer's rows: the receipt says how likely a fault in so many is found


@dataclass(frozen=True)
class Layer:
    """One attention layer of a tower; `layer` is its number in the model."""

    layer: int
    heads: int
    groups: int
    width: int
    value_width: int
    scale: float
    softcap: float | None
    sink: bool
    queries: str  # the stream of tokens that look
    keys: str  # the stream of tokens that are looked at
    module: str  # its path in the model
    visit: int = 0  # how often a forward pass had run that module before, where layers share it


@dataclass(frozen=True)
class Tower:
    """A run of attention layers. `depth` counts all layers, those without attention too."""

    name: str
    role: str  # "self", "causal" or "cross"
    depth: int
    layers: tuple[Layer, ...]

    def find(self, number: int) -> Layer | None:
        return next((layer for layer in self.layers if layer.layer == number), None)


@dataclass(frozen=True)
class LayerReceipt:
    """The difference between what we recompute and what the model computed, in one layer."""

    tower: str
    layer: int
    weights_error: float  # recomputed weights against the model's own
    output_error: float  # the layer's output against a plain run, relative to its size
    stored_error: float | None  # weights recomputed from the stored numbers; None before storing
    exact: bool
    reason: str = ""  # why not, where it is not


@dataclass(frozen=True)
class Rows:
    """How many rows were compared with the model: a row is one query of one layer, all heads."""

    compared: int
    of: int

    def __add__(self, other: "Rows") -> "Rows":
        return Rows(self.compared + other.compared, self.of + other.of)


@dataclass(frozen=True)
class Receipt:
    """The proof that what was captured is what the model computed."""

    how: str  # "named", "eager", "trace" or "outputs"; of other tools GIVEN or CACHE
    dtype: str
    bound: float
    layers: tuple[LayerReceipt, ...]
    missing: tuple[str, ...] = ()  # attention that the model has and that was not recorded
    run_error: float | None = None  # worst output error over sampled rows of the whole run
    not_taken: tuple[str, ...] = ()  # the other ways that were tried, and why they were not taken
    tried: Rows | None = None  # rows of the trial, of those that its inputs have when not cut
    run: Rows | None = None  # rows of the whole run; older atlases do not say

    @property
    def exact(self) -> bool:
        return bool(self.layers) and not self.missing and all(layer.exact for layer in self.layers)

    @property
    def worst_error(self) -> float:
        return max((layer.weights_error for layer in self.layers), default=math.nan)

    @property
    def line(self) -> str:
        """Return one line that says whether the capture is exact, and which layers are not."""
        if self.how == GIVEN:
            return "weights as they were given; no receipt"
        if self.how == CACHE:
            return f"compared with the cache's own pattern ({self.worst_error:.1e})"
        if self.exact:
            rows = ""
            if self.run is not None:
                rows = f"; {self.run.compared:,} of {self.run.of:,} rows checked"
            return f"capture exact ({self.worst_error:.1e}{rows})"
        layers = [layer for layer in self.layers if not layer.exact]
        lost = [f"{layer.tower} {layer.layer} ({layer.reason})" for layer in layers]
        return f"left out, not exact: {', '.join([*lost, *self.missing])}"

    @property
    def rows_line(self) -> str:
        """Return how many rows of all layers were compared; "" in an older atlas."""
        if self.tried is None:
            return ""
        line = f"rows checked: {self.tried.compared:,} of {self.tried.of:,} in the trial"
        if self.run is None:
            return line
        line += f", {self.run.compared:,} of {self.run.of:,} in the run"
        if self.run.compared >= self.run.of:
            return line
        by_layer = self.run.compared // max(1, sum(layer.exact for layer in self.layers))
        found = 1 - (1 - SHARE) ** by_layer
        return f"{line}; a fault in {SHARE:.0%} of a layer's rows is found with p = {found:.4g}"


@dataclass(frozen=True)
class Shard:
    """One file of vectors."""

    file: str
    inputs: int
    bytes: int
    checksum: str


@dataclass(frozen=True)
class Manifest:
    """The contents of atlas.json."""

    model: str
    revision: str | None
    model_class: str
    towers: tuple[Tower, ...]
    streams: tuple[str, ...]
    inputs: int
    tokens: int
    keep: tuple[str, ...]
    receipt: Receipt
    shards: tuple[Shard, ...]
    tables: dict[str, str]  # file → checksum
    options: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def kept_inputs(self) -> frozenset[int] | None:
        """Return the inputs whose vectors are stored; None: all."""
        kept = self.options.get("kept_inputs")
        return None if kept is None else frozenset(kept)

    @property
    def holes(self) -> str:
        """Return why heads cannot be measured, where some lack the weights of some inputs."""
        return str(self.options.get("holes") or "")

    @property
    def sealed(self) -> bool:
        """Tell whether every file of the atlas carries a checksum; those of format 1 do not."""
        return self.format > 1

    def write(self, folder: Path) -> None:
        files.write_json(folder / NAME, plain(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        path = folder / NAME
        raw, has_seal = files.read_sealed_json(path)
        version = raw.get("format")
        if type(version) is not int or version < 1:
            raise StoreError(f"{path} is damaged: it has no format version")
        if version > FORMAT:
            raise StoreError(
                f"{folder.name} has format {version} and this version reads up to {FORMAT}; "
                "upgrade with: pip install -U attention-atlas"
            )
        if version > 1 and not has_seal:
            raise StoreError(f"{path} is damaged: it has no checksum; capture the atlas again")
        try:
            manifest = manifest_from(raw)
            check_manifest(manifest)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise StoreError(f"{path} is damaged: {problem}; capture the atlas again") from problem
        return manifest


def manifest_from(raw: dict[str, Any]) -> Manifest:
    """Read a manifest from JSON; raise a ValueError that says which part is wrong."""
    towers = [tower | {"layers": _with_visits(tower["layers"])} for tower in raw["towers"]]
    manifest: Manifest = decode(Manifest, raw | {"towers": towers})
    return manifest


def towers_from(raw: list[dict[str, Any]]) -> tuple[Tower, ...]:
    """Read the towers of a model from JSON."""
    towers = [tower | {"layers": _with_visits(tower["layers"])} for tower in raw]
    return tuple(decode(Tower, tower, "tower") for tower in towers)


def _with_visits(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the layers of a tower; older files have no visits, so count the uses of a module."""
    seen = Counter[str]()
    layers = []
    for layer in raw:
        layers.append({"visit": seen[layer["module"]], **layer})
        seen[layer["module"]] += 1
    return layers


def receipt_from(raw: dict[str, Any]) -> Receipt:
    """Read a receipt from JSON."""
    receipt: Receipt = decode(Receipt, raw, "receipt")
    return receipt


def plain(value: Any) -> Any:
    """Replace NaN and infinities, which JSON lacks, by words; return the value for JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
