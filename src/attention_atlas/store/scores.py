"""How are scores and kinds stored in an atlas?

scores.parquet  one row per head and measure: head, measure, value, low, high, n, chance
kinds.parquet   one row per head: head, kind, margin, agree, n, detail, sink, with_sink,
                without_sink, telling (inputs), evidence for each shape, a count for each kind

scores-without-sinks.parquet, kinds-without-sinks.parquet
                the same of weights from which the sinks of each input were taken out

All are sealed tables (`sealed_table`) that say which atlas they belong to, the options used, and
for each measure its title, formula, source and what chance means. Scores are written last and hold
the checksum of their kinds: an atlas that has them has both.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.sealed_table import frame_of, read_sealed, write_sealed

SCORES, KINDS = "scores.parquet", "kinds.parquet"
WITHOUT_SINKS = ("scores-without-sinks.parquet", "kinds-without-sinks.parquet")
_TODO = "measure the atlas again: attention-atlas measure --again"
_WORDS = ("title", "formula", "source", "chance", "range")
_SCORE = {
    "head": "text", "measure": "text", "value": "number", "low": "number", "high": "number",
    "n": "whole", "chance": "number",
}  # fmt: skip
_KIND = {
    "head": "text", "kind": "text", "margin": "number", "agree": "number", "n": "whole",
    "detail": "text", "sink": "number", "with_sink": "text", "without_sink": "text",
    "telling": "wholes",
}  # fmt: skip
_NO_VALUE = ("value", "low", "high", "chance", "margin", "sink", "detail", "without_sink")


@dataclass(frozen=True)
class Scores:
    """The scores and kinds of an atlas's heads."""

    table: pd.DataFrame  # one row per head and measure
    kinds: pd.DataFrame  # one row per head
    measures: dict[str, dict[str, str]]  # name → title, formula, source, chance
    options: dict[str, Any]


def file_names(without_sinks: bool = False) -> tuple[str, str]:
    """Return the names of the files of scores and of kinds."""
    return WITHOUT_SINKS if without_sinks else (SCORES, KINDS)


def write_scores(
    folder: Path, manifest: Manifest, scores: Scores, without_sinks: bool = False
) -> None:
    about = {
        "atlas": belongs_to(manifest), "measures": scores.measures, "options": scores.options
    }  # fmt: skip
    kinds, table = (
        pa.Table.from_pandas(frame, preserve_index=False) for frame in (scores.kinds, scores.table)
    )
    score_file, kind_file = file_names(without_sinks)
    checksum = write_sealed(folder / kind_file, kinds, about)
    write_sealed(folder / score_file, table, {**about, "kinds": checksum})


def read_scores(folder: Path, manifest: Manifest, without_sinks: bool = False) -> Scores | None:
    """Read the scores of an atlas; None if there are none or they are of another capture."""
    path, kind_path = (folder / name for name in file_names(without_sinks))
    if not files.is_file(path):
        return None
    scores = read_sealed(path, _TODO)
    about = scores.about
    if about.get("atlas") != belongs_to(manifest):
        return None
    kinds = read_sealed(kind_path, _TODO)
    if "kinds" in about and about["kinds"] != kinds.checksum:
        raise StoreError(f"{kind_path} and {path.name} are not of one measuring; {_TODO}")
    table = frame_of(path, scores.table, _SCORE, _TODO, _NO_VALUE)
    kind_table = frame_of(kind_path, kinds.table, _KIND, _TODO, _NO_VALUE)
    with files.damage(path, _TODO):
        _check(table, kind_table, about, manifest)
    return Scores(table, kind_table, about["measures"], about["options"])


def _check(
    table: pd.DataFrame, kinds: pd.DataFrame, about: dict[str, Any], manifest: Manifest
) -> None:
    """Raise a ValueError if scores are not one a head and measure, with words for each measure."""
    measures = about["measures"]
    for words in (measures, about["options"], *measures.values()):
        if not isinstance(words, dict):
            raise ValueError("its measures or options are no JSON objects")
    for name, words in measures.items():
        texts = all(isinstance(text, str) for text in words.values())
        if not texts or not set(_WORDS[:4]) <= set(words) <= set(_WORDS):
            raise ValueError(f"the words of {name} are not {', '.join(_WORDS)}")
    if not len(table) or not len(kinds):
        raise ValueError("it has no scores")
    for frame, keys in ((table, ["head", "measure"]), (kinds, ["head"])):
        if frame.duplicated(keys).any():
            raise ValueError("a head has a score twice")
        unknown = set(frame["head"]) - head_names(manifest)
        if unknown:
            raise ValueError(f"it has a head {min(unknown)[:40]!r}, which the atlas lacks")
    if not set(table["measure"]) <= set(measures):
        raise ValueError("it has scores without words")


def head_names(manifest: Manifest) -> set[str]:
    """Return the names of all heads of an atlas."""
    several = len(manifest.towers) > 1
    return {
        (f"{tower.name}." if several else "") + f"L{layer.layer}H{head}"
        for tower in manifest.towers
        for layer in tower.layers
        for head in range(layer.heads)
    }


def belongs_to(manifest: Manifest) -> str:
    """Return a hash of the captured vectors, which tells one capture from another."""
    sums = "".join(shard.checksum for shard in manifest.shards)
    return hashlib.sha256(sums.encode()).hexdigest()[:16]
