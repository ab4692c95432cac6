"""Do a head's query and key weights resemble each other?

Pearson's correlation of the two matrices, entry by entry, which a capture computes from the live
model and writes into the manifest. Near 1, a token looks at tokens like itself: in vision
transformers at the same patch (Yeh et al. 2023). It does not depend on inputs, so it has no
interval.
"""

import math
from typing import Any

import numpy as np

from attention_atlas.names.head import Head
from attention_atlas.store.reader import StoredAtlas

NAME = "weight-correlation"
WORDS = {
    "title": "query–key weight correlation",
    "formula": "Pearson correlation of the entries of the query and the key weight matrix",
    "source": "Yeh et al. 2023, AttentionViz",
    "chance": "zero",
}


def alike_rows(atlas: StoredAtlas) -> tuple[list[dict[str, Any]], dict[str, dict[str, str]]]:
    """Make rows for the table of scores, and the words of the score; empty for older atlases."""
    known = atlas.manifest.options.get("weight_correlation") or {}
    rows = []
    for tower in atlas.towers:
        prefix = tower.name if len(atlas.towers) > 1 else ""
        for layer in tower.layers:
            for number, value in enumerate(known.get(f"{tower.name}.L{layer.layer}", ())):
                if math.isfinite(float(value)):
                    rows.append({
                        "head": str(Head(prefix, layer.layer, number)), "measure": NAME,
                        "value": float(value), "low": np.nan, "high": np.nan,
                        "n": len(atlas), "chance": 0.0,
                    })  # fmt: skip
    return rows, {NAME: WORDS} if rows else {}
