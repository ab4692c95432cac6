"""Does a head look from a word to the word it depends on?

A word is right if, of all other words it sees, its most looked-at one is linked to it in the tree,
either way round, so that causal heads, which see only what came before, are asked the same. The
score is the share of right words less that of the best fixed offset on the same words under the
same mask: a head that always looks one word back gets nothing for it. `relations` tells the
relations apart.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from attention_atlas.measure.conllu import read_conllu
from attention_atlas.measure.look import Floats
from attention_atlas.measure.relations import Relations
from attention_atlas.measure.run import Extra
from attention_atlas.measure.trees import OFFSETS, match, right, walk
from attention_atlas.store.reader import StoredAtlas

NAME = "syntax"
FORMULA = "share of words whose most attended word is linked to it in the tree − the best offset's"
SOURCE = "Clark et al. 2019; trees from the CoNLL-U file given"


def syntax(atlas: StoredAtlas, path: str | Path, seed: int = 0) -> tuple[Extra, pd.DataFrame]:
    """Agreement of every head with the trees of a CoNLL-U file: in all, and by relation."""
    matched = match(atlas, read_conllu(path), Path(path).name)
    layers = [layer for tower in atlas.towers for layer in tower.layers]
    heads = sum(layer.heads for layer in layers)
    values = np.full((atlas.manifest.inputs, heads), np.nan)
    fixed = np.full((atlas.manifest.inputs, len(layers), len(OFFSETS)), np.nan)
    relations = Relations(atlas, matched)
    for one in walk(atlas, matched):
        links = matched[one.input].linked
        count, words = right(one.chosen, links, one.seen)
        if words:
            values[one.input, one.heads] = count / words
            fixed[one.input, one.layer] = right(one.fixed, links, one.seen)[0] / words
        relations.add(one)
    baseline = _best(fixed)
    of_head = np.repeat(baseline, [layer.heads for layer in layers])
    extra = Extra(
        NAME, "syntax, above best offset", FORMULA, SOURCE, values - of_head, np.zeros(heads),
        f"the best fixed offset, which is right for {_told(baseline)} of the words", (-1.0, 1.0),
    )  # fmt: skip
    return extra, relations.table(seed)


def _best(fixed: Floats) -> Floats:
    """(L,): what the best offset reaches in each layer, averaged over inputs as heads are."""
    known = np.isfinite(fixed).any(2).sum(0)[:, None]  # (L, 1)
    mean = np.nansum(fixed, 0) / np.maximum(known, 1)
    return np.where(known[:, 0] > 0, mean.max(1), np.nan)


def _told(baseline: Floats) -> str:
    known = baseline[np.isfinite(baseline)]
    if not known.size:
        return "none"
    low, high = f"{known.min():.3f}", f"{known.max():.3f}"
    return low if low == high else f"{low} to {high}"
