"""How are labels of patches stored in an atlas?

labels.parquet  one row per token: token, label (null: none), share (of its box with that label)

Its Parquet metadata holds, under `attention_atlas`, a JSON object: the format version, the atlas it
belongs to and the model that named the patches. Reading an atlas adds `label` to its tokens.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.scores import belongs_to

FORMAT = 1
LABELS = "labels.parquet"
_ABOUT = b"attention_atlas"
_SCHEMA = pa.schema([("token", pa.int64()), ("label", pa.string()), ("share", pa.float32())])


def write_labels(
    folder: Path, manifest: Manifest, labels: list[str | None], shares: list[float], model: str
) -> None:
    """Write one label and share per token, in the order of tokens.parquet."""
    table = pa.table(
        {"token": np.arange(len(labels)), "label": labels, "share": shares}, schema=_SCHEMA
    )
    about = {"format": FORMAT, "atlas": belongs_to(manifest), "model": model}
    metadata = {_ABOUT: json.dumps(about).encode()}
    files.write_table(folder / LABELS, table.replace_schema_metadata(metadata))


def read_labels(folder: Path, manifest: Manifest) -> pd.Series | None:
    """Read one label per token; return None if there are none or they are of another capture."""
    if not (folder / LABELS).is_file():
        return None
    table = files.read_table(folder / LABELS)
    try:
        about = json.loads(table.schema.metadata[_ABOUT])
    except (KeyError, TypeError, ValueError) as problem:
        raise StoreError(f"{folder / LABELS} is damaged; label the atlas again") from problem
    if about.get("format", 0) > FORMAT:
        raise StoreError(f"{LABELS} is from a newer version; upgrade attention-atlas")
    if about.get("atlas") != belongs_to(manifest) or table.num_rows != manifest.tokens:
        return None
    return pd.Series(table.column("label").to_pandas().astype(object))
