"""An atlas with one long input, whose heads do what we planted; it is written with the real store.

L0H0 looks one token back. L0H1 looks at equal words. L0H2 looks mostly at the first token, a sink,
and a little at equal words. L0H3 looks at the token 1,000 places before.
"""

from pathlib import Path

import numpy as np

from attention_atlas.atlas import Atlas
from attention_atlas.store.form import CAUSAL
from tests import planted

TOKENS = 3000  # no power of two: the last tiles and cells are cut
WIDTH = 32
BACK = 1000
_WORDS = sorted(word for words in planted.WORDS.values() for word in words)


def long_text(folder: Path, tokens: int = TOKENS) -> Atlas:
    """The atlas of a short text and of one with so many tokens."""
    luck = np.random.default_rng(0)
    texts = [
        ["<s>", "short", "and", "sweet"],
        ["<s>", *luck.choice(_WORDS, size=tokens - 1).tolist()],
    ]
    every = [word for text in texts for word in text]
    position = np.concatenate([np.arange(len(text)) for text in texts])
    place = 8 * luck.standard_normal((tokens, WIDTH)) / WIDTH**0.25
    spelled = {word: 5 * luck.standard_normal(WIDTH) / WIDTH**0.25 for word in sorted(set(every))}
    words = np.array([spelled[word] for word in every])
    sink = np.zeros(WIDTH)
    sink[0] = 1.0
    first = (position == 0)[:, None]
    queries = np.stack([
        place[np.maximum(position - 1, 0)], words, 0.5 * words + 8 * sink,
        place[np.maximum(position - BACK, 0)],
    ])  # fmt: skip
    keys = np.stack([place[position], words, np.where(first, 14 * sink, words), place[position]])
    return planted.write(folder, texts, queries, keys, form=CAUSAL)
