"""What does each head do when a needle is asked for? Haystacks are texts of an atlas.

text … cue needle … text … cue needle
                             ^ here each token of the needle must be predicted
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import special_ids
from attention_atlas.record.write.capture import capture
from attention_atlas.store.reader import StoredAtlas

INPUTS, HAYSTACK, CUE, NEEDLE = 12, 56, 2, 6
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Needles:
    """Captured haystacks: where the needle is predicted, and where each of its tokens lies."""

    atlas: StoredAtlas
    rows: Numbers  # (inputs, NEEDLE)
    wanted: Numbers  # (inputs, NEEDLE)


def capture_needles(atlas: StoredAtlas, loaded: Loaded, seed: int = 0) -> Needles:
    """Hide needles in texts of an atlas and let the model read them; returns what it looked at."""
    dice = np.random.default_rng(seed)
    special = special_ids(loaded.tokenizer) if loaded.tokenizer is not None else frozenset()
    ids = atlas.tokens()["id"].to_numpy().astype(np.int64)
    text = ids[(ids >= 0) & ~np.isin(ids, list(special))]
    size = int(loaded.model.config.vocab_size)
    words = np.array([i for i in range(size) if i not in special])
    inputs, rows, wanted = [], [], []
    for _ in range(INPUTS):
        hay = _haystack(text, dice)
        drawn = dice.choice(np.setdiff1d(words, hay), CUE + NEEDLE, replace=False)
        place = int(dice.integers(2, HAYSTACK * 2 // 3))
        whole = np.concatenate([hay[:place], drawn, hay[place:], drawn])
        asked = HAYSTACK + CUE + NEEDLE + CUE - 1  # the last token of the second cue
        inputs.append({"input_ids": whole[None]})
        rows.append(asked + np.arange(NEEDLE))
        wanted.append(place + CUE + np.arange(NEEDLE))
    given: Any = inputs
    model = (loaded.model, loaded.processor)
    made = capture(model, given, keep=("query", "key"), seed=seed, progress=False)
    return Needles(made, np.array(rows), np.array(wanted))


def _haystack(text: Numbers, dice: np.random.Generator) -> Numbers:
    """Return HAYSTACK tokens of the atlas in their order, from anywhere on."""
    start = int(dice.integers(0, len(text)))
    return np.resize(np.roll(text, -start), HAYSTACK)
