"""Which tokens go on the map when there are more than it can hold?

`inputs` takes whole inputs, drawn at random, so that a query and the keys it attends to are on the
map together. Of a long input it takes the beginning, which holds all that a causal query sees.
`uniform` draws every token with the same chance. `balanced` draws a token with a chance that falls
with the root of how often its text occurs, so that a few frequent words do not fill the map.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.names.errors import InputError

Numbers = npt.NDArray[np.int64]
Chances = npt.NDArray[np.float64]


def uniform(tokens: pd.DataFrame) -> Chances:
    return np.ones(len(tokens))


def balanced(tokens: pd.DataFrame) -> Chances:
    often = tokens.groupby("text")["text"].transform("size").to_numpy(np.float64)
    return np.asarray(1 / np.sqrt(often))


SAMPLINGS: dict[str, Callable[[pd.DataFrame], Chances]] = {
    "inputs": uniform,
    "uniform": uniform,
    "balanced": balanced,
}
BEGINNING = 256  # tokens of an input that are taken at least, if it has them


def sample(tokens: pd.DataFrame, most: int, sampling: str, seed: int) -> Numbers:
    """Draw at most `most` rows of the table; returns their positions in order."""
    if sampling not in SAMPLINGS:
        raise InputError(f"no sampling is named {sampling!r}; there are: {', '.join(SAMPLINGS)}")
    if most < 1:
        raise InputError(f"a map needs at least 1 token, not {most}; give 1 or more")
    if len(tokens) <= most:
        return np.arange(len(tokens), dtype=np.int64)
    if sampling == "inputs":
        return _whole_inputs(tokens["input"].to_numpy(np.int64), most, seed)
    luck = np.random.default_rng(seed).gumbel(size=len(tokens))
    first = np.argsort(-(luck + np.log(SAMPLINGS[sampling](tokens))), kind="stable")[:most]
    return np.sort(first).astype(np.int64)


def _whole_inputs(inputs: Numbers, most: int, seed: int) -> Numbers:
    """Take inputs in random order until `most` tokens are reached; returns rows in order."""
    numbers, first, count = np.unique(inputs, return_index=True, return_counts=True)
    share = np.minimum(count, max(BEGINNING, most // len(numbers)))
    rows: list[Numbers] = []
    left = most
    for drawn in np.random.default_rng(seed).permutation(len(numbers)):
        taken = min(int(share[drawn]), left)
        rows.append(np.arange(first[drawn], first[drawn] + taken, dtype=np.int64))
        left -= taken
        if not left:
            break
    return np.sort(np.concatenate(rows))
