"""Which word does each head choose, and could it have chosen one that the tree links?

Tokens become words: attention to a word is the sum over its tokens, from a word the mean over them
(Clark et al. 2019). A head chooses, for each word, the other word that it looks at most. Fixed
offsets choose too, under the same masks: they are what a head is held against.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.measure.conllu import Sentence
from attention_atlas.measure.read_blocks import LARGEST, head_ranges
from attention_atlas.measure.row_block import Bools, Floats
from attention_atlas.names.errors import InputError
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import StoredLayer

REACH = 8  # words; offsets tried for the best fixed one
OFFSETS = (*range(-REACH, 0), *range(1, REACH + 1))
Places = npt.NDArray[np.intp]


class Matched:
    """One input with its tree: which tokens make up each word, and who depends on whom."""

    def __init__(self, sentence: Sentence, tokens: pd.DataFrame):
        starts, ends = tokens["start"].to_numpy(), tokens["end"].to_numpy()
        words = [
            np.flatnonzero((starts >= 0) & (starts < word.end) & (ends > word.start))
            for word in sentence.words
        ]
        self.words = [tokens for tokens in words if tokens.size]
        number = {i: k for k, i in enumerate(i for i, w in enumerate(words) if w.size)}
        count = len(self.words)
        self.depends: dict[str, Bools] = {}  # relation → (W, W): row depends on column
        for place, word in enumerate(sentence.words):
            if place in number and word.head in number and word.relation != "punct":
                links = self.depends.setdefault(word.relation, np.zeros((count, count), bool))
                links[number[place], number[word.head]] = True
        self.linked = np.zeros((count, count), bool)  # either way round
        for links in self.depends.values():
            self.linked |= links | links.T


@dataclass(frozen=True)
class Choices:
    """What some heads, and fixed offsets, choose for some words of one input; −1: nothing."""

    input: int
    layer: int  # its place among all layers
    heads: slice  # their places among all heads
    words: slice  # w of the input's W words
    chosen: Places  # (H, w)
    fixed: Places  # (offsets, w)
    seen: Bools  # (w, W)


def match(atlas: StoredAtlas, sentences: Sequence[Sentence], file: str) -> dict[int, Matched]:
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
    stream = atlas.towers[0].layers[0].queries
    made = {place: Matched(one, atlas.tokens(place, stream)) for place, one in found.items()}
    return {place: one for place, one in made.items() if len(one.words) > 1}


def walk(atlas: StoredAtlas, matched: dict[int, Matched]) -> Iterator[Choices]:
    """Every head that looks from the first stream at itself, on every input with a tree."""
    stream = atlas.towers[0].layers[0].queries
    layers = [(tower, layer) for tower in atlas.towers for layer in tower.layers]
    firsts = np.cumsum([0, *(layer.heads for _, layer in layers)])
    for place, (tower, layer) in enumerate(layers):
        if not layer.queries == layer.keys == stream:
            continue
        for shard in range(len(atlas.manifest.shards)):
            stored = atlas.held_layer(shard, tower, layer)
            for number in stored.inputs():
                if number in matched:
                    for heads, words, chosen in _chosen(stored, number, matched[number].words):
                        own = slice(firsts[place] + heads[0], firsts[place] + heads[-1] + 1)
                        yield Choices(number, place, own, words, *chosen)


def _chosen(
    stored: StoredLayer, number: int, words: list[Places]
) -> Iterator[tuple[Places, slice, tuple[Places, Places, Bools]]]:
    """Heads, words and what is chosen for them: as many words at a time as fit into memory."""
    keys = stored.size(number)[1]
    for heads in head_ranges(stored.layer, keys):
        most = max(1, LARGEST // (len(heads) * keys))  # rows
        parts = np.cumsum([len(tokens) for tokens in words]) // most
        for part in np.unique(parts):
            first, last = np.searchsorted(parts, [part, part + 1])
            rows, places = np.unique(np.concatenate(words[first:last]), return_inverse=True)
            own = np.split(places, np.cumsum([len(tokens) for tokens in words[first : last - 1]]))
            weights, seen = stored.weights(number, heads, rows), stored.seen(number, heads, rows)
            yield heads, slice(first, last), choose(weights, seen, words, own, int(first))


def choose(
    weights: Floats, seen: Bools, words: list[Places], rows: list[Places], first: int = 0
) -> tuple[Places, Places, Bools]:
    """(H, w) and (offsets, w): the word chosen, and (w, W): which other words a word sees.

    For the words from `first` on whose tokens are `rows` of the weights (H, R, M).
    """
    attention = by_words(weights, words, rows)
    other = by_words(seen[None].astype(np.float32), words, rows)[0] > 0
    other[np.arange(len(rows)), first + np.arange(len(rows))] = False
    attention = np.where(other, attention, 0)
    return np.where(attention.max(2) > 0, attention.argmax(2), -1), _fixed(other, first), other


def by_words(weights: Floats, words: list[Places], rows: list[Places]) -> Floats:
    """(H, w, W) from (H, R, M)."""
    columns = np.stack([weights[:, :, tokens].sum(2) for tokens in words], 2)
    return np.stack([columns[:, tokens].mean(1) for tokens in rows], 1)


def _fixed(seen: Bools, first: int) -> Places:
    """(offsets, w): the word so far away, where it is there to be seen."""
    index = np.arange(len(seen))
    targets = first + index + np.array(OFFSETS)[:, None]
    inside = (targets >= 0) & (targets < seen.shape[1])
    there = inside & seen[index, np.where(inside, targets, 0)]
    return np.where(there, targets, -1)


def right(chosen: Places, links: Bools, seen: Bools) -> tuple[Places, int]:
    """(H,): how many words chose one that `links` (w, W) names, and how many could have."""
    words = np.flatnonzero((links & seen).any(1))
    picked = chosen[:, words]
    fine = (picked >= 0) & links[words, np.maximum(picked, 0)]
    return fine.sum(1), len(words)
