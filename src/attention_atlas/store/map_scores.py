"""Which figures of the maps describe heads, beside the scores?

`umap-2d.strongest` and the like, in the form of `Scores.table`. They are read from the map files
whenever they are asked for: a map may be computed after the scores, or again.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from attention_atlas.names.errors import StoreError
from attention_atlas.store.maps import read_figures

_SHUFFLED = "the same places shuffled"
_COLUMNS = ["head", "measure", "value", "low", "high", "n", "chance"]
_WORDS = {
    "strongest": (
        "strongest near",
        "share of queries whose strongest visible key, special tokens apart, is among its 3 nearest"
        " visible keys on the map",
        "three keys chosen at random",
        "0 to 1",
    ),
    "visible": (
        "order of keys",
        "Spearman's correlation of distance on the map and logit over the visible keys of a query;"
        " −1 is perfect",
        _SHUFFLED,
        "-1 to 1",
    ),
    "overlap": (
        "mixed",
        "share of the 15 nearest points that are of the other kind, doubled; 0 is two islands",
        _SHUFFLED,
        "0 to 2",
    ),
    "correlation": (
        "correlation",
        "Spearman's correlation of distance on the map and q·k over all keys of the input;"
        " −1 is perfect",
        _SHUFFLED,
        "-1 to 1",
    ),
}  # figure → title, formula, what chance means, range


def map_scores(folder: Path) -> tuple[pd.DataFrame, dict[str, dict[str, str]]]:
    """Read the figures of every map of an atlas: rows as in Scores.table, and their words.

    A map that cannot be read is left out; the page says elsewhere why.
    """
    rows: list[dict[str, Any]] = []
    words: dict[str, dict[str, str]] = {}
    for path in sorted((folder / "layouts").glob("*.safetensors")):
        try:
            heads = read_figures(path)
        except StoreError:
            continue
        for figure in _WORDS:
            if any(f"map.{figure}" in figures for figures in heads.values()):
                rows += [_row(path.stem, figure, head, known) for head, known in heads.items()]
                words[f"{path.stem}.{figure}"] = _words(path.stem, figure)
    return pd.DataFrame(rows, columns=_COLUMNS), words


def _row(name: str, figure: str, head: str, known: dict[str, float]) -> dict[str, Any]:
    chance = known.get("chance" if figure == "strongest" else f"shuffled.{figure}", np.nan)
    value = known.get(f"map.{figure}", np.nan)
    return {
        "head": head, "measure": f"{name}.{figure}", "value": value,
        "low": np.nan, "high": np.nan, "n": 0, "chance": chance,
    }  # fmt: skip


def _words(name: str, figure: str) -> dict[str, str]:
    title, formula, chance, values = _WORDS[figure]
    return {
        "title": f"map {name}: {title}", "formula": formula, "source": "this atlas's map",
        "chance": chance, "range": values,
    }  # fmt: skip
