"""Which row of the unembedding does a person mean by a token or class?"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from attention_atlas.names.errors import PickError
from attention_atlas.store.output import Readout


def next_token(tokens: pd.DataFrame, position: int, readout: Readout) -> int:
    """Return the number of the token after a position, or its own; of a classifier, class 0."""
    if readout.classes is not None:
        return int(readout.ids[0])
    ids = tokens["id"].to_numpy()
    return int(ids[min(position + 1, len(ids) - 1)])


def number_of(
    asked: int | str, tokens: pd.DataFrame, readout: Readout, all_tokens: Callable[[], pd.DataFrame]
) -> int:
    """Return the number of a token or class by its number or text."""
    if isinstance(asked, int | np.integer):
        return int(asked)
    if readout.classes is not None:
        if asked in readout.classes:
            return list(readout.classes).index(asked)
        names = ", ".join(readout.classes[:8])
        raise PickError(f"no class is named {asked[:40]!r}; there are {names}")
    for frame in (tokens, all_tokens()):
        texts = frame["text"].astype(str)
        for same in (texts == asked, texts.str.strip("\u0120\u2581# ") == asked.strip()):
            if same.any():
                return int(frame["id"][same].iloc[0])
    raise PickError(
        f"no token {asked[:40]!r} occurs in the inputs of this atlas; give one that does, or its "
        "number in the vocabulary"
    )
