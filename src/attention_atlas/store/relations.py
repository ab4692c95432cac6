"""How is agreement with trees, relation by relation, stored in an atlas?

relations.parquet   one row per head, relation and way: see `COLUMNS` of measure/relations.py; like
                    scores.parquet, it is sealed and names the atlas it belongs to
"""

from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow as pa

from attention_atlas.store import files
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.scores import belongs_to
from attention_atlas.store.sealed_table import frame_of, read_sealed, write_sealed

RELATIONS = "relations.parquet"
_TODO = "measure it again: attention-atlas measure --conllu FILE"
_COLUMNS = {
    "head": "text", "relation": "text", "way": "text", "right": "number", "baseline": "number",
    "offset": "whole", "above": "number", "low": "number", "high": "number", "words": "whole",
    "inputs": "whole",
}  # fmt: skip
_NO_VALUE = ("low", "high")


def write_relations(folder: Path, manifest: Manifest, table: pd.DataFrame) -> None:
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    write_sealed(folder / RELATIONS, arrow, {"atlas": belongs_to(manifest)})


def read_relations(folder: Path, manifest: Manifest) -> pd.DataFrame | None:
    """Read the relations; None if no trees were given, or they were given for another capture."""
    path = folder / RELATIONS
    if not files.is_file(path):
        return None
    stored = read_sealed(path, _TODO)
    if stored.about.get("atlas") != belongs_to(manifest):
        return None
    return frame_of(path, stored.table, _COLUMNS, _TODO, _NO_VALUE)


def forget_relations(folder: Path) -> None:
    with suppress(OSError):  # a folder that cannot be written to keeps them
        (folder / RELATIONS).unlink(missing_ok=True)
