"""Which tokens is a sequence made of, and which piece of the text is each?"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch

from attention_atlas.images.pixel_origins import Shown
from attention_atlas.models.sound import Heard

_SPECIAL_NAMES = ("bos", "eos", "sep", "pad", "cls", "mask")


@dataclass(frozen=True)
class Tokens:
    """One sequence of tokens of one input: columns of equal length N, pads left out."""

    text: list[str]  # as the tokenizer has it: "Ġthe", "##ing"
    id: list[int]  # -1 where there is none
    special: list[bool]
    start: list[int]  # first character in the text of its segment, -1 where none
    end: list[int]
    segment: list[int]  # 0 the text, 1 the second text or target, -1 neither
    word: list[int]  # counts on from the first text into the second, -1 where none

    def __len__(self) -> int:
        return len(self.text)

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def at(self, places: Sequence[int]) -> "Tokens":
        return Tokens(*([getattr(self, f.name)[i] for i in places] for f in fields(self)))


@dataclass(frozen=True)
class Encoded:
    """One input ready for the model: leading axis 1, nothing padded."""

    tensors: dict[str, torch.Tensor]
    streams: dict[str, Tokens]
    truncated: bool
    shown: Shown | None = None  # what of its pictures the tensors show
    heard: Heard | None = None  # the sound in the tensors


def bare_tokens(ids: Sequence[int], tokenizer: Any | None) -> Tokens:
    """Make tokens of which only the ids are known."""
    n = len(ids)
    none = [-1] * n
    if tokenizer is None:
        return Tokens([str(i) for i in ids], list(ids), [False] * n, none, none, none, none)
    specials = special_ids(tokenizer)
    return Tokens(
        # models round their embeddings up, so an id may have no string in the vocabulary
        [str(i) if t is None else t for i, t in zip(ids, _strings(ids, tokenizer), strict=True)],
        list(ids),
        [i in specials for i in ids],
        none,
        none,
        [-1 if i in specials else 0 for i in ids],
        none,
    )


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Get the ids that stand for no piece of text; an unknown word does stand for one."""
    added = (i for i, token in tokenizer.added_tokens_decoder.items() if token.special)
    named = {getattr(tokenizer, f"{name}_token_id", None) for name in _SPECIAL_NAMES}
    unknown = {getattr(tokenizer, "unk_token_id", None)} - named  # GPT-2 has one token for both
    return frozenset({*tokenizer.all_special_ids, *added} - unknown)


def _strings(ids: Sequence[int], tokenizer: Any) -> list[str | None]:
    found: list[str | None] = tokenizer.convert_ids_to_tokens(list(ids))
    return found


def text_tokens(encoding: Any, tokenizer: Any, *texts: str | None, segment: int = 0) -> Tokens:
    """Make the tokens of what a tokenizer returned for a text of segment `segment`, or a pair."""
    ids = list(encoding["input_ids"])
    bare = bare_tokens(ids, tokenizer)
    # the mask knows the tokens that were added, the ids know those written into the text: [MASK]
    added = [bool(flag) for flag in encoding["special_tokens_mask"]]
    special = [flag or known for flag, known in zip(added, bare.special, strict=True)]
    if not encoding.is_fast:
        types = encoding.get("token_type_ids", [0] * len(ids))
        sided = zip(special, types, strict=True)
        segments = [-1 if flag else segment + side for flag, side in sided]
        return Tokens(bare.text, ids, special, bare.start, bare.end, segments, bare.word)
    sides = encoding.sequence_ids(0)
    spans = [
        (-1, -1) if side is None else span
        for span, side in zip(encoding["offset_mapping"], sides, strict=True)
    ]
    return Tokens(
        bare.text,
        ids,
        special,
        [start for start, _ in spans],
        [end for _, end in spans],
        [-1 if side is None else segment + side for side in sides],
        _words(encoding.word_ids(0), sides, spans, texts),
    )


def _words(
    known: Sequence[int | None],
    sides: Sequence[int | None],
    spans: Sequence[tuple[int, int]],
    texts: Sequence[str | None],
) -> list[int]:
    """Number words: a word ends where the tokenizer says so, and at every space.

    SentencePiece tokenizers take a whole text for one word.
    """
    words: list[int] = []
    count, last, reached = -1, None, 0
    for word, side, (start, end) in zip(known, sides, spans, strict=True):
        if word is None or side is None:
            words.append(-1)
            last = None
            continue
        text = texts[side] or ""
        first = end - len(text[start:end].lstrip())
        if last != (side, word) or any(c.isspace() for c in text[reached:first]):
            count += 1
        words.append(count)
        last, reached = (side, word), first
    return words
