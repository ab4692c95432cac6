"""How are scores and kinds stored in an atlas?

scores.parquet  one row per head and measure: head, measure, value, low, high, n, chance
kinds.parquet   one row per head: head, kind, margin, agree, n, detail, sink, with_sink,
                without_sink, telling (inputs), evidence for each shape, a count for each kind

Both carry in their Parquet metadata, under `attention_atlas`, a JSON object: the format version,
the atlas they belong to, the options used, and for each measure its title, formula, source and
what chance means. Scores are written last: an atlas that has them has both.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.manifest import Manifest

FORMAT = 1
SCORES, KINDS = "scores.parquet", "kinds.parquet"
_ABOUT = b"attention_atlas"


@dataclass(frozen=True)
class Scores:
    """The scores and kinds of an atlas's heads."""

    table: pd.DataFrame  # one row per head and measure
    kinds: pd.DataFrame  # one row per head
    measures: dict[str, dict[str, str]]  # name → title, formula, source, chance
    options: dict[str, Any]


def write_scores(folder: Path, manifest: Manifest, scores: Scores) -> None:
    about = {
        "format": FORMAT,
        "atlas": belongs_to(manifest),
        "measures": scores.measures,
        "options": scores.options,
    }
    for name, frame in ((KINDS, scores.kinds), (SCORES, scores.table)):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        metadata = {_ABOUT: json.dumps(about).encode()}
        files.write_table(folder / name, table.replace_schema_metadata(metadata))


def read_scores(folder: Path, manifest: Manifest) -> Scores | None:
    """Read the scores of an atlas; None if there are none or they are of another capture."""
    if not (folder / SCORES).is_file():
        return None
    table, kinds = files.read_table(folder / SCORES), files.read_table(folder / KINDS)
    try:
        about = json.loads(table.schema.metadata[_ABOUT])
    except (KeyError, TypeError, ValueError) as problem:
        raise StoreError(f"{folder / SCORES} is damaged; measure the atlas again") from problem
    if about.get("format", 0) > FORMAT:
        raise StoreError(f"{SCORES} is from a newer version; upgrade attention-atlas")
    if about.get("atlas") != belongs_to(manifest):
        return None
    return Scores(table.to_pandas(), kinds.to_pandas(), about["measures"], about["options"])


def belongs_to(manifest: Manifest) -> str:
    """Return a hash of the captured vectors, which tells one capture from another."""
    sums = "".join(shard.checksum for shard in manifest.shards)
    return hashlib.sha256(sums.encode()).hexdigest()[:16]
