"""Attention drawn from the words of the study that named the five shapes.

Written before the rules and apart from them; each function quotes what it draws. Noise is a random
split of the attention that the words do not speak of, and how much they speak of is drawn as well.

Axes: N tokens; rows look, columns are looked at. A causal row sees the columns up to its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Dice = np.random.Generator


@dataclass(frozen=True)
class Page:
    """What a pattern is drawn on: its length, who may see whom, where the delimiters stand."""

    n: int
    causal: bool
    special: npt.NDArray[np.bool_]  # (N,)

    def visible(self, row: int) -> int:
        return row + 1 if self.causal else self.n

    def tags(self, row: int) -> tuple[int, int]:
        """The start and the end of the sentence, as far as a row sees it.

        The end is the last delimiter that is not the start, or, where there is none, the last
        token.
        """
        seen = self.visible(row)
        marks = [int(mark) for mark in np.flatnonzero(self.special[:seen]) if mark > 0]
        return 0, marks[-1] if marks else seen - 1


def draw_page(dice: Dice) -> Page:
    """Lengths of 6 to 256, as many short ones as long ones; with delimiters every second time."""
    n = int(np.exp(dice.uniform(np.log(6), np.log(257))))
    causal = bool(dice.integers(2))
    special = np.zeros(n, bool)
    if dice.integers(2):
        special[0] = True
        if causal:  # one sentence has ended early in what is read
            special[int(dice.integers(1, max(2, n // 6)))] = True
        else:
            special[-1] = True
    return Page(n, causal, special)


def noise(page: Page, row: int, dice: Dice) -> Array:
    """(N,): one, split at random among the keys that a row sees."""
    split = np.zeros(page.n)
    seen = page.visible(row)
    split[:seen] = dice.dirichlet(np.ones(seen))
    return split


def fill(page: Page, dice: Dice, planted: Callable[[int], Array], strength: float) -> Array:
    """(N, N): in each row about `strength` of the attention as planted, the rest noise.

    A row for which nothing can be planted (its target lies outside) is noise.
    """
    rows = []
    for row in range(page.n):
        share = float(np.clip(strength + dice.normal(0, 0.07), 0, 1))
        target = planted(row)
        total = target.sum()
        rest = noise(page, row, dice)
        rows.append(rest if total == 0 else share * target / total + (1 - share) * rest)
    return np.array(rows)


def parallel(page: Page, dice: Dice) -> Array:
    """ "Mainly consist of the parallels": "tokens point clearly to those tokens"."""
    offset = int(dice.choice([-3, -2, -1, 0] if page.causal else [-3, -2, -1, 0, 1, 2, 3]))
    offset = int(np.clip(offset, -page.n // 4, page.n // 4))

    def planted(row: int) -> Array:
        target = np.zeros(page.n)
        if 0 <= row + offset < page.n:
            target[row + offset] = 1
        return target

    return fill(page, dice, planted, dice.uniform(0.55, 0.95))


def radioactive(page: Page, dice: Dice) -> Array:
    """ "The attention rays point to the start or end tag intensively"."""
    to_the_end = bool(dice.integers(2)) and (not page.causal or page.special.any())

    def planted(row: int) -> Array:
        target = np.zeros(page.n)
        start, end = page.tags(row)
        target[end if to_the_end else start] = 1
        return target

    return fill(page, dice, planted, dice.uniform(0.55, 0.95))


def homogeneous(page: Page, dice: Dice) -> Array:
    """ "Attention flows evenly to each token", "similar attention to all tokens"."""
    unevenness = dice.uniform(0, 0.35)
    rough = np.exp(dice.normal(0, unevenness, (page.n, page.n)))
    seen = np.tri(page.n) if page.causal else np.ones((page.n, page.n))
    weights: Array = rough * seen / (rough * seen).sum(1, keepdims=True)
    return weights


def x_type(page: Page, dice: Dice) -> Array:
    """ "Pays equal attention to the beginning and end labels of the sentence"."""
    lean = dice.uniform(0.42, 0.58)

    def planted(row: int) -> Array:
        target = np.zeros(page.n)
        start, end = page.tags(row)
        target[start] += lean
        target[end] += 1 - lean
        return target

    return fill(page, dice, planted, dice.uniform(0.6, 0.95))


def compound(page: Page, dice: Dice) -> Array:
    """ "Messy", "no definite shape", "can focus on several individual tokens"."""
    few = int(dice.integers(1, 4))
    famous = dice.permutation(np.arange(page.n))[: max(3, page.n // 8)]
    by_row = bool(dice.integers(2))

    def planted(row: int) -> Array:
        target = np.zeros(page.n)
        seen = page.visible(row)
        pool = np.arange(seen) if by_row else famous[famous < seen]
        if pool.size:
            chosen = dice.choice(pool, size=min(few, pool.size), replace=False)
            target[chosen] = dice.dirichlet(np.ones(chosen.size) * 2)
        return target

    return fill(page, dice, planted, dice.uniform(0.6, 0.95))


DRAWN: dict[str, Callable[[Page, Dice], Array]] = {
    "parallel": parallel,
    "radioactive": radioactive,
    "homogeneous": homogeneous,
    "X-type": x_type,
    "compound": compound,
}


def random_attention(page: Page, dice: Dice) -> Array:
    """No shape at all: every row split at random among the keys it sees."""
    return np.array([noise(page, row, dice) for row in range(page.n)])
