"""Does a head look from a word to the word it depends on?

Tokens become words: attention to a word is the sum over its tokens, from a word the mean over them
(Clark et al. 2019). A word is right if, of all other words it sees, its most looked-at one is
linked to it in the tree, either way round, so that causal heads, which see only what came before,
are asked the same. The score is the share of right words less that of the best fixed offset: a
head that always looks one word back gets nothing for it.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.errors import InputError
from attention_atlas.measure.conllu import Sentence, read_conllu
from attention_atlas.measure.look import Floats
from attention_atlas.measure.run import Extra
from attention_atlas.store.atlas import Atlas
from attention_atlas.store.stream import pieces

NAME = "syntax"
REACH = 8  # words; offsets tried for the best fixed one
FORMULA = "share of words whose most attended word is linked to it in the tree − the best offset's"
SOURCE = "Clark et al. 2019; trees from the CoNLL-U file given"


def syntax(atlas: Atlas, path: str | Path) -> Extra:
    """Syntactic agreement of every head with the trees of a CoNLL-U file."""
    matched = match(atlas, read_conllu(path), Path(path).name)
    heads = sum(layer.heads for tower in atlas.towers for layer in tower.layers)
    values = np.full((len(atlas), heads), np.nan)
    baseline = best_offset(list(matched.values()))
    base = 0
    for tower in atlas.towers:
        for layer in tower.layers:
            if layer.queries == layer.keys:
                for shard in range(len(atlas.manifest.shards)):
                    for piece in pieces(atlas, shard, tower, layer, only=set(matched)):
                        own = slice(base + piece.heads.start, base + piece.heads.stop)
                        right = _right(piece.weights, matched[piece.input])
                        values[piece.input, own] = right - baseline
            base += layer.heads
    return Extra(
        NAME, "syntax, above best offset", FORMULA, SOURCE, values, np.zeros(heads),
        f"the best fixed offset, which is right for {baseline:.3f} of the words",
    )  # fmt: skip


class Matched:
    """One input with its tree: which tokens make up each word, and who is linked to whom."""

    def __init__(self, sentence: Sentence, tokens: pd.DataFrame):
        starts, ends = tokens["start"].to_numpy(), tokens["end"].to_numpy()
        words = [
            np.flatnonzero((starts >= 0) & (starts < word.end) & (ends > word.start))
            for word in sentence.words
        ]
        self.words = [tokens for tokens in words if tokens.size]
        number = {i: k for k, i in enumerate(i for i, w in enumerate(words) if w.size)}
        count = len(self.words)
        self.linked = np.zeros((count, count), bool)
        for place, word in enumerate(sentence.words):
            if place in number and word.head in number and word.relation != "punct":
                self.linked[number[place], number[word.head]] = True
                self.linked[number[word.head], number[place]] = True


def match(atlas: Atlas, sentences: Sequence[Sentence], file: str) -> dict[int, Matched]:
    """Input → its tree, for every input whose text is a sentence of the file."""
    known = {sentence.text.strip(): sentence for sentence in sentences}
    texts = atlas.inputs()["text"]
    found = {
        place: known[str(text).strip()]
        for place, text in enumerate(texts)
        if str(text).strip() in known
    }
    if not found:
        raise InputError(
            f"no input of {atlas.path.name} is a sentence of {file}: its first one is "
            f"{sentences[0].text[:60]!r}; capture the sentences of that file"
        )
    return {place: Matched(one, atlas.tokens(place)) for place, one in found.items()}


def by_words(weights: Floats, words: list[npt.NDArray[np.intp]]) -> Floats:
    """(H, W, W) from (H, N, N)."""
    columns = np.stack([weights[:, :, tokens].sum(2) for tokens in words], 2)
    return np.stack([columns[:, tokens].mean(1) for tokens in words], 1)


def _right(weights: Floats, one: Matched) -> Floats:
    """(H,): share of the linked words that look most at one they are linked to."""
    attention = by_words(weights, one.words)
    count = len(one.words)
    attention[:, np.arange(count), np.arange(count)] = -1
    return _share(attention.argmax(2), one.linked, np.asarray((attention > 0).any(0)))


def _share(
    chosen: npt.NDArray[np.intp], linked: npt.NDArray[np.bool_], seen: npt.NDArray[np.bool_]
) -> Floats:
    """Of the words that see a linked one, those that chose one."""
    can = (linked & seen).any(1)
    if not can.any():
        return np.full(len(chosen), np.nan)
    words = np.flatnonzero(can)
    return np.asarray(linked[words, chosen[:, words]].mean(1))


def best_offset(matched: list[Matched]) -> float:
    """The largest share of words, over all inputs, that one fixed offset gets right."""
    best = 0.0
    for offset in (*range(-REACH, 0), *range(1, REACH + 1)):
        right = total = 0
        for one in matched:
            count = len(one.words)
            places = np.flatnonzero(one.linked.any(1))
            targets = places + offset
            inside = (targets >= 0) & (targets < count)
            right += int(one.linked[places[inside], targets[inside]].sum())
            total += len(places)
        best = max(best, right / total if total else 0.0)
    return best
