"""What does a layer's attention give to the model, and what are the logits read from?

`output.safetensors`, written once a capture; `atlas.json` says under options.output what is in it.
For layers (for example `decoder.L3`), the final norm and the unembedding:

    decoder.L3.projection   (H · E, width)  rows h·E to (h+1)·E turn what head h moves
    decoder.L3.bias         (width,)        absent where there is none
    decoder.L3.gain         (width,)        where a norm or a scale stands after the projection
    norm.gain  norm.shift   (width,)        of the norm before the unembedding
    unembedding             (V, width)      rows of the tokens in `unembedding.ids` (V,)

How it is read (all arrays are float32, read when first asked for and then kept; a small file is
read as a whole):

    atlas.output                                the Output of an atlas
    atlas.output.projection("decoder", 3)       LayerProjection: matrix (H, E, width), bias (width,)
    atlas.output.readout                        Readout: norm, gain, shift, ids, rows, classes
    atlas.output.has("decoder", 3)              whether a layer's projection is kept

The layer gives  y_i = Σ_h Σ_j w_hij · value_j @ matrix[h]  + bias.  What is not there raises a
PickError with one sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.store import files
from attention_atlas.store.manifest import NAME, Manifest
from attention_atlas.store.shard import ShardFile
from attention_atlas.store.typed import decode

OUTPUT = "output.safetensors"
HELD = 64_000_000  # bytes of a file that is read into memory as a whole
_WIDEST = 2048  # rows of a matrix whose products are kept: 16 MB a layer
_SMALL = 2**20  # numbers of a matrix whose products are made for any number of rows
_TODO = "capture the atlas again"
Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LayerProjection:
    """The output projection of one layer, cut by heads."""

    matrix: Float32  # (H, E, width)
    bias: Float32 | None  # (width,)
    gain: Float32 | None = None  # (width,) of a norm or scale after the projection
    after: str = ""  # "", "rms", "layer" or "scale": what stands there

    @property
    def flat(self) -> Float32:
        """Get the matrix of all heads together, (H·E, width)."""
        return self.matrix.reshape(-1, self.matrix.shape[2])

    @cached_property
    def products(self) -> Float32 | None:
        """Get the products of all rows of the matrix (H·E, H·E), or None where they are large."""
        flat = self.flat
        small = len(flat) <= min(_WIDEST, 2 * flat.shape[1])
        return flat @ flat.T if small else None

    def products_for(self, rows: int) -> Float32 | None:
        """Get the products for so many rows; None where making them costs more than they save.

        A row costs width products a row of the matrix to the output and as many back; with the
        products, as many as the matrix has rows. Those of a small matrix are made in a few
        milliseconds, once, so every input takes them. What was asked before does not count, so that
        the same question has the same answer, to the last bit.
        """
        high, width = self.flat.shape
        pays = rows * (2 * width - high) >= high * width
        return self.products if pays or high * width <= _SMALL else None

    @cached_property
    def bias_products(self) -> tuple[Float32, np.float32]:
        """Get the products of the bias with all rows of the matrix (H·E,), and with itself."""
        assert self.bias is not None
        return self.flat @ self.bias, np.float32(self.bias @ self.bias)

    @cached_property
    def factors(self) -> Float32:
        """Get R_h (H, E', E) with ‖R_h v‖ = ‖v @ matrix[h]‖: a product with E × E numbers."""
        return np.stack([np.linalg.qr(head.T, mode="r") for head in self.matrix])


@dataclass(frozen=True)
class Readout:
    """What the logits are: factor · norm(stream) @ rows.T, of one or of every token."""

    tower: str  # the tower whose stream is read
    norm: str  # "rms" or "layer"
    gain: Float32  # (width,)
    shift: Float32  # (width,)
    factor: float
    place: str  # "each", "first" or "last": the token that is read
    ids: npt.NDArray[np.int64]  # (V,) the tokens or classes whose rows are kept
    rows: Float32  # (V, width)
    classes: Sequence[str] | None  # names, for a classifier
    layers: Mapping[str, str]  # layers (decoder.L3) that add to this stream → module that adds


class Output:
    """What an atlas keeps of its model's outputs."""

    def __init__(self, folder: Path, manifest: Manifest):
        self._name, self._path = folder.name, folder / OUTPUT
        self.facts: Mapping[str, Any] = manifest.options.get("output") or {}
        with files.damage(folder / NAME, _TODO):
            _check_facts(self.facts)
        self._layers: dict[tuple[str, int], LayerProjection] = {}
        self._shapes = {
            f"{tower.name}.L{layer.layer}": (layer.heads, layer.value_width)
            for tower in manifest.towers
            for layer in tower.layers
        }

    @cached_property
    def _file(self) -> ShardFile:
        if not self._path.is_file():
            raise StoreError(f"{self._path} is missing; capture the atlas again")
        size = self.facts["bytes"]
        return ShardFile(self._path, size, self.facts["checksum"], held=size <= HELD)

    def has(self, tower: str, layer: int) -> bool:
        """Tell whether the projection of a layer is kept."""
        return f"{tower}.L{layer}" in self.facts.get("layers", {})

    @property
    def layers(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what is known of each layer whose projection is kept, by name (decoder.L3)."""
        layers: Mapping[str, Mapping[str, Any]] = self.facts.get("layers", {})
        return layers

    @property
    def worst_error(self) -> float | None:
        """Return how far a layer's output is from the sum of its heads; None: nothing is kept."""
        return max((layer["error"] for layer in self.layers.values()), default=None)

    @property
    def line(self) -> str:
        """Return one line of the receipt: whether the heads add up to their layers."""
        if self.worst_error is None:
            return ""
        missing = len(self.facts.get("missing", {}))
        rest = f"; of {missing} layers it is not known" if missing else ""
        return f"the heads add up to their layers ({self.worst_error:.1e}{rest})"

    def projection(self, tower: str, layer: int) -> LayerProjection:
        """Return the output projection of a layer; raise a PickError if it is not kept."""
        stem = f"{tower}.L{layer}"
        if stem not in self.layers:
            raise PickError(self.why_not(stem))
        if (tower, layer) not in self._layers:
            about = self.layers[stem]
            own, (heads, width) = about["tensors"], self._shapes[stem]
            with files.damage(self._path, _TODO):
                matrix = self._tensor(f"{own}.projection").reshape(heads, width, -1)
            self._layers[tower, layer] = LayerProjection(
                matrix, self._maybe(f"{own}.bias"),
                self._maybe(f"{stem}.gain"), about.get("after", ""),
            )  # fmt: skip
        return self._layers[tower, layer]

    def why_not(self, stem: str) -> str:
        """Return one sentence that says why a layer's projection is not kept."""
        if not self.facts:
            return (
                f"{self._name} was captured by a version that kept no output projections, so what "
                "heads move is not known; capture it again with --overwrite"
            )
        reason = self.facts.get("missing", {}).get(stem, "this layer is not stored")
        return f"what the heads of {stem} move is not known: {reason}"

    @cached_property
    def readout(self) -> Readout:
        """Return what the logits are read from; raise a PickError if the model has no such."""
        about = self.facts.get("readout")
        if about is None:
            raise PickError(self._why_no_readout())
        return Readout(
            about["tower"], about["norm"], self._tensor("norm.gain"), self._tensor("norm.shift"),
            about["factor"], about["place"], self._file.tensor("unembedding.ids").astype(np.int64),
            self._tensor("unembedding"), about.get("classes"), about["layers"],
        )  # fmt: skip

    def _why_no_readout(self) -> str:
        why = self.facts.get("no_readout", "")
        if why:
            return f"what heads add to a logit is not known for {self._name}: {why}"
        return (
            f"{self._name} was captured by a version that kept no unembedding; capture it again "
            "with --overwrite"
        )

    def _tensor(self, name: str) -> Float32:
        return self._file.tensor(name).astype(np.float32, copy=False)

    def _maybe(self, name: str) -> Float32 | None:
        return self._tensor(name) if name in self._file.names else None


def _check_facts(facts: Any) -> None:
    """Raise a ValueError or KeyError if what the manifest says of the file has other types."""
    known = decode(dict[str, Any], facts, "output")
    for name, layer in decode(dict[str, dict[str, Any]], known.get("layers", {}), "layers").items():
        decode(str, layer["tensors"], f"{name}.tensors")
        decode(float, layer["error"], f"{name}.error")
        decode(str, layer.get("after", ""), f"{name}.after")
    decode(dict[str, str], known.get("missing", {}), "missing")
    decode(str, known.get("no_readout", ""), "no_readout")
    readout = decode(dict[str, Any] | None, known.get("readout"), "readout")
    if known.get("layers") or readout:
        decode(int, known["bytes"], "bytes")
        decode(str, known["checksum"], "checksum")
    if readout is not None:
        for name in ("tower", "norm", "place"):
            decode(str, readout[name], name)
        decode(float, readout["factor"], "factor")
        decode(dict[str, str], readout["layers"], "layers")
        decode(tuple[str, ...] | None, readout.get("classes"), "classes")
