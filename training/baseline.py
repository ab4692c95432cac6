"""What would counting alone predict? The models to beat: words, pairs of words, both neighbours."""

from dataclasses import dataclass

import numpy as np

from training.text import Stream

DISCOUNT = 0.75


@dataclass(frozen=True)
class Counts:
    """How likely a token is: `unigram` (V,), and `bigram` (V, V) after another token.

    Pairs are discounted by a constant, and what that frees goes to the unigram (Kneser and Ney's
    interpolation, without their change of the unigram).
    """

    unigram: np.ndarray
    bigram: np.ndarray

    @classmethod
    def of(cls, stream: Stream, vocabulary: int) -> "Counts":
        tokens = stream.tokens.astype(np.int64)
        once = np.bincount(tokens, minlength=vocabulary) + 1.0
        unigram = once / once.sum()
        pairs = np.bincount(tokens[:-1] * vocabulary + tokens[1:], minlength=vocabulary**2)
        pairs = pairs.reshape(vocabulary, vocabulary)
        seen = pairs.sum(1, keepdims=True)
        freed = DISCOUNT * (pairs > 0).sum(1, keepdims=True)
        kept = np.maximum(pairs - DISCOUNT, 0)
        never = seen == 0
        bigram = (kept + freed * unigram) / np.maximum(seen, 1) + never * unigram
        return cls(unigram, bigram.astype(np.float32))

    def unigram_loss(self, target: np.ndarray) -> float:
        return float(-np.log(self.unigram[target]).mean())

    def bigram_loss(self, before: np.ndarray, target: np.ndarray) -> float:
        return float(-np.log(self.bigram[before, target]).mean())

    def neighbours_loss(self, before: np.ndarray, target: np.ndarray, after: np.ndarray) -> float:
        """Both true neighbours known: p(target | before) · p(after | target), made to sum to 1."""
        losses = []
        by_after = np.ascontiguousarray(self.bigram.T)
        for left, middle, right in zip(before, target, after, strict=True):
            score = self.bigram[left] * by_after[right]  # (V,)
            losses.append(-np.log(score[middle] / score.sum()))
        return float(np.mean(losses))
