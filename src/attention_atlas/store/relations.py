"""How is agreement with trees, relation by relation, stored in an atlas?

relations.parquet   one row per head, relation and way: see `COLUMNS` of measure/relations.py; like
                    scores.parquet, its metadata names the atlas it belongs to
"""

from pathlib import Path

import pandas as pd
import pyarrow as pa

from attention_atlas.store import files
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.scores import belongs_to

RELATIONS = "relations.parquet"
_ATLAS = b"attention_atlas"


def write_relations(folder: Path, manifest: Manifest, table: pd.DataFrame) -> None:
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {_ATLAS: belongs_to(manifest).encode()}
    files.write_table(folder / RELATIONS, arrow.replace_schema_metadata(metadata))


def read_relations(folder: Path, manifest: Manifest) -> pd.DataFrame | None:
    """Read the relations; None if no trees were given, or they were given for another capture."""
    if not (folder / RELATIONS).is_file():
        return None
    table = files.read_table(folder / RELATIONS)
    if (table.schema.metadata or {}).get(_ATLAS) != belongs_to(manifest).encode():
        return None
    frame: pd.DataFrame = table.to_pandas()
    return frame


def forget_relations(folder: Path) -> None:
    (folder / RELATIONS).unlink(missing_ok=True)
