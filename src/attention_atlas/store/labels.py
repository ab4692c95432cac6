"""How are labels of patches stored in an atlas?

labels.parquet  one row per token: token, label (null: none), share (of its box with that label)

It is a sealed table (`sealed_table`) that says which atlas it belongs to and which model named the
patches. Reading an atlas adds `label` to its tokens.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from attention_atlas.store import files
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.scores import belongs_to
from attention_atlas.store.sealed_table import frame_of, read_sealed, write_sealed

LABELS = "labels.parquet"
_TODO = "label the atlas again: attention-atlas label"
_COLUMNS = {"token": "whole", "label": "text", "share": "number"}
_SCHEMA = pa.schema([("token", pa.int64()), ("label", pa.string()), ("share", pa.float32())])


def write_labels(
    folder: Path, manifest: Manifest, labels: list[str | None], shares: list[float], model: str
) -> None:
    """Write one label and share per token, in the order of tokens.parquet."""
    table = pa.table(
        {"token": np.arange(len(labels)), "label": labels, "share": shares}, schema=_SCHEMA
    )
    write_sealed(folder / LABELS, table, {"atlas": belongs_to(manifest), "model": model})


def read_labels(folder: Path, manifest: Manifest) -> pd.Series | None:
    """Read one label per token; return None if there are none or they are of another capture."""
    path = folder / LABELS
    if not files.is_file(path):
        return None
    stored = read_sealed(path, _TODO)
    if stored.about.get("atlas") != belongs_to(manifest) or len(stored.table) != manifest.tokens:
        return None
    frame = frame_of(path, stored.table, _COLUMNS, _TODO, ("label", "share"))
    return pd.Series(frame["label"].astype(object))
