"""What does a model predict at a position, before and after edits?

next    the token after a position: models that generate
masked  the token at a position: models that fill in masks
label   a class of the input, or of a token: classifiers

A model without a head predicts nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from attention_atlas.models.encode import Encoded
from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import bare_tokens
from attention_atlas.names.errors import ModelError, PickError
from attention_atlas.names.token_text import shown

Predicts = Literal["next", "masked", "label", ""]
NOT_FINITE = "with these edits the model's numbers are not finite; edit with smaller numbers"
LIKELIEST = 10  # tokens before, and as many after
MOST_MASKS = 8  # positions that are shown where none is asked for


@dataclass(frozen=True)
class Guess:
    """A token or label, with its probability before and after."""

    text: str
    id: int
    before: float
    after: float


@dataclass(frozen=True)
class Guesses:
    """What a model predicts at one position; -1: for the whole input."""

    position: int
    label: str
    tokens: tuple[Guess, ...]


def predicts(model: Any) -> Predicts:
    """Tell what a model predicts, by the head that it has."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    if inner.can_generate():
        return "next"
    if inner.get_output_embeddings() is not None:
        return "masked"
    return "" if inner.base_model is inner else "label"


def logits_of(outputs: Any) -> Tensor | None:
    """Return the logits of a model's outputs, (1, N, V) or (1, C), or None if it has none."""
    for name in ("logits", "prediction_logits"):
        logits = getattr(outputs, name, None)
        if isinstance(logits, Tensor) and logits.dim() in (2, 3):
            return logits
    return None


class Predictor:
    """What a model predicts on one input; made once for all its worlds."""

    def __init__(self, loaded: Loaded, item: Encoded):
        self.loaded, self.item = loaded, item
        self.kind = predicts(loaded.model)
        stream = "decoder" if "decoder" in item.streams else "text"
        self.tokens = item.streams.get(stream)

    def guesses(self, before: Tensor, after: Tensor, at: int | None = None) -> list[Guesses]:
        """Return the predictions at a position, else at the last token or the masked ones."""
        if not bool(torch.isfinite(after).all()):
            raise ModelError(NOT_FINITE)
        if before.dim() == 2:
            return [self._pair(-1, "label of the input", before[0], after[0])]
        positions = self._positions(at, before.shape[1])
        return [
            self._pair(position, self._label(position), before[0, position], after[0, position])
            for position in positions
        ]

    def _positions(self, at: int | None, count: int) -> list[int]:
        if at is not None:
            if not 0 <= at < count:
                raise PickError(f"there is no token {at}; the input has tokens 0 to {count - 1}")
            return [at]
        if self.kind == "next":
            return [count - 1]
        return self.masked[:MOST_MASKS] or [self._last(count)]

    @property
    def masked(self) -> list[int]:
        """Get the positions of masked tokens."""
        mask = getattr(self.loaded.tokenizer, "mask_token_id", None)
        ids = [] if self.tokens is None or mask is None else self.tokens.id
        return [position for position, token in enumerate(ids) if token == mask]

    def _last(self, count: int) -> int:
        """Return the last token of the text that is not a special one."""
        special = [] if self.tokens is None else self.tokens.special[:count]
        plain = [position for position, flag in enumerate(special) if not flag]
        return plain[-1] if plain else count - 1

    def _label(self, position: int) -> str:
        token = str(position)
        if self.tokens is not None and position < len(self.tokens):
            token = f"“{shown(self.tokens.text, self.tokens.special)[position]}”"
        words = {"next": "after", "masked": "at", "label": "label of"}
        return f"{words[self.kind]} {token}"

    def _pair(self, position: int, label: str, before: Tensor, after: Tensor) -> Guesses:
        """Return the likeliest entries before and after, together, likeliest of either first."""
        first, second = (torch.softmax(row.double(), -1).cpu() for row in (before, after))
        count = min(LIKELIEST, len(first))
        likeliest = [*first.topk(count).indices.tolist(), *second.topk(count).indices.tolist()]
        chosen = torch.tensor(sorted(set(likeliest)))
        order = torch.maximum(first[chosen], second[chosen]).argsort(descending=True, stable=True)
        ids = chosen[order].tolist()
        guesses = [
            Guess(text, number, float(first[number]), float(second[number]))
            for text, number in zip(self._texts(ids), ids, strict=True)
        ]
        return Guesses(position, label, tuple(guesses))

    def _texts(self, ids: Sequence[int]) -> list[str]:
        if self.kind == "label":
            names = getattr(self.loaded.model.config, "id2label", None) or {}
            return [str(names.get(number, number)) for number in ids]
        tokens = bare_tokens(ids, self.loaded.tokenizer)
        return shown(tokens.text, tokens.special)
