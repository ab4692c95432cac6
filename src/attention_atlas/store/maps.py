"""How is a map stored on disk?

`layouts/umap-2d.safetensors`, readable by any safetensors reader. For every group of heads that
share their tokens (a tower; a tower's stage where stages differ), under its name:

    places         (heads, N + M, dims) uint16   0 to 65535 across the box; queries, then keys
    box            (heads, 2, dims) float32      the places of 0 and 65535
    query_tokens   (N,) int64                    token numbers of the atlas
    key_tokens     (M,) int64
    c              (heads,) float32              queries × c, keys ÷ c
    fidelity       (heads, figures) float32      columns as the metadata names them

The header's metadata holds one JSON text: options, versions, the head names of each group, and the
names of the figures. A file keeps its own names: older versions measured fewer figures. Beside it
stands the seal of the file (see `seal`); files of format 1 have none.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.store.files import damage, write_tensors
from attention_atlas.store.tensor_file import TensorFile

FORMAT = 2  # 1 had no seals
LAST = 65535
_TODO = "run the layout again"
SIDES = ("query", "key")
OF_A_MAP = ("strongest", "visible", "overlap", "like", "correlation", "trust", "kept")
FIGURES = ("chance", "to_special", "full.correlation", "full.visible",
           *(f"{of}.{name}" for of in ("map", "pca", "shuffled") for name in OF_A_MAP))  # fmt: skip
Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class MapHeads:
    """The maps of heads that share their tokens."""

    heads: tuple[str, ...]
    places: npt.NDArray[np.uint16]
    box: Float32
    query_tokens: npt.NDArray[np.int64]
    key_tokens: npt.NDArray[np.int64]
    c: Float32
    fidelity: Float32

    def unpacked(self) -> Float32:
        """Return the places in the map's own units, float32 (heads, N + M, dims)."""
        low, high = self.box[:, :1], self.box[:, 1:]
        return (low + self.places.astype(np.float32) / LAST * (high - low)).astype(np.float32)


@dataclass(frozen=True)
class Map:
    """One layout of a whole atlas: places and fidelity of every head."""

    options: dict[str, Any]
    groups: dict[str, MapHeads]
    figures: tuple[str, ...] = FIGURES  # the columns of each group's fidelity

    def of(self, head: str) -> tuple[Float32, dict[str, float]]:
        """Return the places (N + M, dims) and the figures of one head."""
        for group in self.groups.values():
            if head in group.heads:
                row = group.heads.index(head)
                figures = dict(zip(self.figures, group.fidelity[row].tolist(), strict=True))
                return group.unpacked()[row], figures
        raise PickError(f"this layout has no head {head!r}; write it as in L5H1")


def write_map(path: Path, layout: Map) -> None:
    arrays: dict[str, Array] = {}
    for name, group in layout.groups.items():
        for field in ("places", "box", "query_tokens", "key_tokens", "c", "fidelity"):
            arrays[f"{name}.{field}"] = getattr(group, field)
    about = {
        "format": FORMAT,
        "options": layout.options,
        "heads": {name: group.heads for name, group in layout.groups.items()},
        "figures": layout.figures,
    }
    write_tensors(path, arrays, {"layout": json.dumps(about)})


def describe(path: Path) -> tuple[dict[str, Any], dict[str, tuple[tuple[str, ...], int, int]]]:
    """Read the options, and each group's heads and numbers of queries and keys, but no places."""
    with _opened(path) as (file, about):
        sizes = {
            name: (
                tuple(heads),
                file.length(f"{name}.query_tokens"),
                file.length(f"{name}.key_tokens"),
            )
            for name, heads in about["heads"].items()
        }
        return about["options"], sizes


def read_map(path: Path) -> Map:
    with _opened(path) as (file, about):
        groups = {
            name: MapHeads(
                tuple(heads),
                *(file.tensor(f"{name}.{field}") for field in (
                    "places", "box", "query_tokens", "key_tokens", "c", "fidelity")),
            )
            for name, heads in about["heads"].items()
        }  # fmt: skip
        return Map(about["options"], groups, tuple(about["figures"]))


def read_figures(path: Path) -> dict[str, dict[str, float]]:
    """Read the figures of each head, head → figure → value, but no places."""
    with _opened(path) as (file, about):
        return {
            head: dict(zip(about["figures"], row, strict=True))
            for name, heads in about["heads"].items()
            for head, row in zip(heads, file.tensor(f"{name}.fidelity").tolist(), strict=True)
        }


@contextmanager
def _opened(path: Path) -> Iterator[tuple[TensorFile, dict[str, Any]]]:
    """Open a map file; yield it and its metadata. Raise a StoreError if it is damaged."""
    with damage(path, _TODO):
        file = TensorFile(path, _TODO)
        about = json.loads(file.metadata.get("layout", "{}"))
        version = about["format"]
        if version > FORMAT:
            raise StoreError(f"{path.name} is from a newer version; upgrade attention-atlas")
        if not file.verify_seal() and version > 1:
            raise ValueError("it has no checksum")
        _check(file, about)
        yield file, about


def _check(file: TensorFile, about: dict[str, Any]) -> None:
    """Raise a ValueError if the tensors of a map are not those of its heads."""
    if not isinstance(about["options"]["asked"], dict):
        raise ValueError("it does not say what was asked for")
    figures = about["figures"]
    if not all(isinstance(figure, str) for figure in figures):
        raise ValueError("its figures have no names")
    for name, heads in about["heads"].items():
        if not heads or not all(isinstance(head, str) for head in heads):
            raise ValueError(f"the heads of {name} have no names")
        n, m = (file.length(f"{name}.{side}_tokens") for side in SIDES)
        dims = file.shape(f"{name}.box")[-1]
        expected = {
            "places": ("uint16", (len(heads), n + m, dims)),
            "box": ("float32", (len(heads), 2, dims)), "c": ("float32", (len(heads),)),
            "query_tokens": ("int64", (n,)), "key_tokens": ("int64", (m,)),
            "fidelity": ("float32", (len(heads), len(figures))),
        }  # fmt: skip
        for field, (kind, shape) in expected.items():
            known = file.dtype(f"{name}.{field}").name, file.shape(f"{name}.{field}")
            if dims not in (2, 3) or known != (kind, shape):
                raise ValueError(f"{name}.{field} has shape {known[1]} and type {known[0]}")
