"""How are the places of all tokens of a head stored, where its map shows a sample of them?

`layouts/umap-2d.all/L5H1.safetensors`, one file a head, beside the map that it belongs to:

    places   (N + M, dims) uint16   all queries of the head in token order, then all its keys
    box      (2, dims) float32      the places of 0 and 65535

The header's metadata holds the seal of the file and a digest of the head's map. A map that was
computed again has another digest, and the file no longer counts. Tokens of the sample lie where the
map has them.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import StoreError
from attention_atlas.store.files import damage, is_file, write_tensors
from attention_atlas.store.maps import Float32, MapHeads
from attention_atlas.store.tensor_file import TensorFile

FORMAT = 2  # 1 had no seals
_TODO = "place the tokens again"


@dataclass(frozen=True)
class AllPlaces:
    """The places of every token of one head."""

    places: npt.NDArray[np.uint16]  # (N + M, dims)
    box: Float32  # (2, dims)


def all_places_path(layout: Path, head: str) -> Path:
    """Return the file of a head's tokens beside the file of a map."""
    return layout.with_suffix(".all") / f"{head}.safetensors"


def map_digest(group: MapHeads, head: str) -> str:
    """Return a digest of one head's map: its places, its box and its tokens."""
    row = group.heads.index(head)
    digest = hashlib.sha256()
    for array in (group.places[row], group.box[row], group.query_tokens, group.key_tokens):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def write_all_places(path: Path, found: AllPlaces, digest: str) -> None:
    about = json.dumps({"format": FORMAT, "map": digest})
    write_tensors(path, {"places": found.places, "box": found.box}, {"all": about})


def is_placed(path: Path, digest: str) -> bool:
    """Tell whether all tokens of a head have places on the map of this digest."""
    if not is_file(path):
        return False
    try:
        return bool(_about(TensorFile(path, _TODO))["map"] == digest)
    except StoreError:
        return False


def read_all_places(path: Path) -> AllPlaces:
    """Read the places of all tokens of a head."""
    with damage(path, _TODO):
        file = TensorFile(path, _TODO)
        about = _about(file)
        if about["format"] > FORMAT:
            raise StoreError(f"{path.name} is from a newer version; upgrade attention-atlas")
        if not file.verify_seal() and about["format"] > 1:
            raise ValueError("it has no checksum")
        places, box = file.tensor("places"), file.tensor("box")
        if places.dtype != np.uint16 or places.ndim != 2 or box.shape != (2, places.shape[1]):
            raise ValueError(f"its places have shape {places.shape} and type {places.dtype}")
        return AllPlaces(places, box.astype(np.float32))


def _about(file: TensorFile) -> dict[str, Any]:
    with damage(file.path, _TODO):
        about: dict[str, Any] = json.loads(file.metadata["all"])
        if not isinstance(about["map"], str):
            raise ValueError("it does not say which map it belongs to")
        return about
