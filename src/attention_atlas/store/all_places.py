"""How are the places of all tokens of a head stored, where its map shows a sample of them?

`layouts/umap-2d.all/L5H1.safetensors`, one file a head, beside the map that it belongs to:

    places   (N + M, dims) uint16   all queries of the head in token order, then all its keys
    box      (2, dims) float32      the places of 0 and 65535

The header's metadata holds a digest of the head's map. A map that was computed again has another
digest, and the file no longer counts. Tokens of the sample lie where the map has them.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from attention_atlas.names.errors import StoreError
from attention_atlas.store.files import write_tensors
from attention_atlas.store.maps import Float32, MapHeads

FORMAT = 1


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
    if not path.is_file():
        return False
    try:
        with safe_open(path, framework="numpy") as file:
            return bool(json.loads((file.metadata() or {})["all"])["map"] == digest)
    except (OSError, SafetensorError, KeyError, ValueError):
        return False


def read_all_places(path: Path) -> AllPlaces:
    """Read the places of all tokens of a head."""
    try:
        with safe_open(path, framework="numpy") as file:
            return AllPlaces(file.get_tensor("places"), file.get_tensor("box"))
    except (OSError, SafetensorError) as problem:
        raise StoreError(
            f"{path} is missing or damaged ({problem}); place the tokens again"
        ) from problem
