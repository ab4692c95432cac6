"""Does a head look from a word to the word it depends on?

A word is right if, of all other words it sees, the one it attends to most is linked to it in the
tree, in either direction, so that causal heads, which see only earlier words, get the same test.
The score is the share of right words minus that of the best fixed offset on the same words under
the same mask: a head that always looks one word back scores 0 at most. `relations` counts by
relation.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.conllu import read_conllu
from attention_atlas.measure.relations import Relations
from attention_atlas.measure.run import Extra
from attention_atlas.measure.trees import OFFSETS, match, right, walk
from attention_atlas.store.reader import StoredAtlas

NAME = "syntax"
FORMULA = "share of words whose most attended word is linked to it in the tree − the best offset's"
SOURCE = "Clark et al. 2019; trees from the CoNLL-U file given"


def syntax(atlas: StoredAtlas, path: str | Path, seed: int = 0) -> tuple[Extra, pd.DataFrame]:
    """Score every head by the trees of a CoNLL-U file; returns scores and a table by relation."""
    matched = match(atlas, read_conllu(path), Path(path).name)
    layers = [layer for tower in atlas.towers for layer in tower.layers]
    heads = sum(layer.heads for layer in layers)
    firsts = np.cumsum([0, *(layer.heads for layer in layers)])
    count, words = np.zeros((2, atlas.manifest.inputs, heads))
    fixed = np.zeros((atlas.manifest.inputs, len(layers), len(OFFSETS)))
    relations = Relations(atlas, matched)
    for choices in walk(atlas, matched):
        links = matched[choices.input].linked[choices.words]
        fine, possible = right(choices.chosen, links, choices.seen)
        count[choices.input, choices.heads] += fine
        words[choices.input, choices.heads] += possible
        if choices.heads.start == firsts[choices.layer]:
            fixed[choices.input, choices.layer] += right(choices.fixed, links, choices.seen)[0]
        relations.add(choices)
    values = np.where(words > 0, count / np.maximum(words, 1), np.nan)
    of_layer = words[:, firsts[:-1], None]  # heads of a layer are tested on the same words
    fixed = np.where(of_layer > 0, fixed / np.maximum(of_layer, 1), np.nan)
    baseline = _best(fixed)
    of_head = np.repeat(baseline, [layer.heads for layer in layers])
    extra = Extra(
        NAME, "syntax, above best offset", FORMULA, SOURCE, values - of_head, np.zeros(heads),
        f"the best fixed offset, which is right for {_range(baseline)} of the words", (-1.0, 1.0),
    )  # fmt: skip
    return extra, relations.table(seed)


def _best(fixed: Floats) -> Floats:
    """Get the share of the best offset in each layer, averaged over inputs as heads are; (L,)."""
    known = np.isfinite(fixed).any(2).sum(0)[:, None]  # (L, 1)
    mean = np.nansum(fixed, 0) / np.maximum(known, 1)
    return np.where(known[:, 0] > 0, mean.max(1), np.nan)


def _range(baseline: Floats) -> str:
    known = baseline[np.isfinite(baseline)]
    if not known.size:
        return "none"
    low, high = f"{known.min():.3f}", f"{known.max():.3f}"
    return low if low == high else f"{low} to {high}"
