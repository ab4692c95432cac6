"""Which word does each head choose for a word, and is that one linked to it in the tree?

Tokens become words: attention to a word is the sum over its tokens, from a word the mean over them
(Clark et al. 2019). A head chooses, for each word, the other word that it attends to most. Fixed
offsets choose under the same masks, as the baseline.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.measure.arrays import Bools, Floats
from attention_atlas.measure.conllu import Sentence
from attention_atlas.measure.read_blocks import LARGEST, head_ranges
from attention_atlas.names.errors import InputError
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import StoredLayer

REACH = 8  # words; offsets tried for the best fixed one
OFFSETS = (*range(-REACH, 0), *range(1, REACH + 1))
Places = npt.NDArray[np.intp]


class Matched:
    """One input with its tree: the tokens of each word, and which word depends on which."""

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
        self.linked = np.zeros((count, count), bool)  # in either direction
        for links in self.depends.values():
            self.linked |= links | links.T


@dataclass(frozen=True)
class Choices:
    """The words that heads and fixed offsets choose for some words of one input; −1: none."""

    input: int
    layer: int  # its place among all layers
    heads: slice  # their places among all heads
    words: slice  # w of the input's W words
    chosen: Places  # (H, w)
    fixed: Places  # (offsets, w)
    seen: Bools  # (w, W)


def match(atlas: StoredAtlas, sentences: Sequence[Sentence], file: str) -> dict[int, Matched]:
    """Match inputs with the sentences of a file by their text; returns input → its tree."""
    known = {sentence.text.strip(): sentence for sentence in sentences}
    texts = atlas.inputs()["text"]
    sentence_of = {
        place: known[str(text).strip()]
        for place, text in enumerate(texts)
        if str(text).strip() in known
    }
    if not sentence_of:
        raise InputError(
            f"no input of {atlas.path.name} is a sentence of {file}, whose first one is "
            f"{sentences[0].text[:60]!r}; capture the sentences of that file"
        )
    stream = atlas.towers[0].layers[0].queries
    trees = {
        place: Matched(sentence, atlas.tokens(place, stream))
        for place, sentence in sentence_of.items()
    }
    return {place: tree for place, tree in trees.items() if len(tree.words) > 1}


def walk(atlas: StoredAtlas, matched: dict[int, Matched]) -> Iterator[Choices]:
    """Yield the choices of every head from the first stream to itself, on inputs with a tree."""
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
                        columns = slice(firsts[place] + heads[0], firsts[place] + heads[-1] + 1)
                        yield Choices(number, place, columns, words, *chosen)


def _chosen(
    stored: StoredLayer, number: int, words: list[Places]
) -> Iterator[tuple[Places, slice, tuple[Places, Places, Bools]]]:
    """Yield heads, words and their choices, as many words at a time as fit into memory."""
    keys = stored.size(number)[1]
    for heads in head_ranges(stored.layer, keys):
        most = max(1, LARGEST // (len(heads) * keys))  # rows
        parts = np.cumsum([len(tokens) for tokens in words]) // most
        for part in np.unique(parts):
            first, last = np.searchsorted(parts, [part, part + 1])
            rows, places = np.unique(np.concatenate(words[first:last]), return_inverse=True)
            ends = np.cumsum([len(tokens) for tokens in words[first : last - 1]])
            weights, seen = stored.weights(number, heads, rows), stored.seen(number, heads, rows)
            yield (
                heads,
                slice(first, last),
                choose(weights, seen, words, np.split(places, ends), int(first)),
            )


def choose(
    weights: Floats, seen: Bools, words: list[Places], rows: list[Places], first: int = 0
) -> tuple[Places, Places, Bools]:
    """Choose a word for each word; returns (H, w), (offsets, w), and which others it sees (w, W).

    The words start at `first`; their tokens are `rows` of the weights (H, R, M).
    """
    attention = by_words(weights, words, rows)
    other = by_words(seen[None].astype(np.float32), words, rows)[0] > 0
    other[np.arange(len(rows)), first + np.arange(len(rows))] = False
    attention = np.where(other, attention, 0)
    return np.where(attention.max(2) > 0, attention.argmax(2), -1), _fixed(other, first), other


def by_words(weights: Floats, words: list[Places], rows: list[Places]) -> Floats:
    """Turn weights of tokens (H, R, M) into weights of words; returns (H, w, W)."""
    columns = np.stack([weights[:, :, tokens].sum(2) for tokens in words], 2)
    return np.stack([columns[:, tokens].mean(1) for tokens in rows], 1)


def _fixed(seen: Bools, first: int) -> Places:
    """Find the word at each offset; returns (offsets, w), −1 where it is not seen."""
    index = np.arange(len(seen))
    targets = first + index + np.array(OFFSETS)[:, None]
    inside = (targets >= 0) & (targets < seen.shape[1])
    visible = inside & seen[index, np.where(inside, targets, 0)]
    return np.where(visible, targets, -1)


def right(chosen: Places, links: Bools, seen: Bools) -> tuple[Places, int]:
    """Count words that chose a linked one, by `links` (w, W); returns (H,) and how many could."""
    words = np.flatnonzero((links & seen).any(1))
    picked = chosen[:, words]
    fine = (picked >= 0) & links[words, np.maximum(picked, 0)]
    return fine.sum(1), len(words)
