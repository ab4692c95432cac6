"""Which tokens go on the map when there are more than it can hold?

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


SAMPLINGS: dict[str, Callable[[pd.DataFrame], Chances]] = {"uniform": uniform, "balanced": balanced}


def sample(tokens: pd.DataFrame, most: int, sampling: str, seed: int) -> Numbers:
    """Draw at most `most` rows of the table; returns their positions in order."""
    if sampling not in SAMPLINGS:
        raise InputError(f"no sampling is named {sampling!r}; there are: {', '.join(SAMPLINGS)}")
    if most < 1:
        raise InputError(f"a map needs at least 1 token, not {most}; give 1 or more")
    if len(tokens) <= most:
        return np.arange(len(tokens), dtype=np.int64)
    luck = np.random.default_rng(seed).gumbel(size=len(tokens))
    first = np.argsort(-(luck + np.log(SAMPLINGS[sampling](tokens))), kind="stable")[:most]
    return np.sort(first).astype(np.int64)
