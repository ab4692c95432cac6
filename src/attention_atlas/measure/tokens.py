"""What are the tokens of each input? Looked up once, so that a pass stays linear."""

import numpy as np
import numpy.typing as npt

from attention_atlas.store.atlas import Atlas

_MARKS = "Ġ▁Ċ#· \n\t"  # with which tokenizers write spaces, line ends and pieces


class TokenTable:
    """Ids and marks of the tokens of every input and stream."""

    def __init__(self, atlas: Atlas):
        frame = atlas.tokens()
        self._inputs = frame["input"].to_numpy()
        self._streams = frame["stream"].to_numpy()
        self._ids = frame["id"].to_numpy(np.int64)
        self._special = frame["special"].to_numpy(bool)
        self._punctuation = np.array([is_punctuation(text) for text in frame["text"]], bool)
        self._punctuation &= ~self._special

    def of(
        self, input: int, stream: str
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """(M,) each: ids, special, punctuation."""
        start, stop = np.searchsorted(self._inputs, [input, input + 1])
        mine = start + np.flatnonzero(self._streams[start:stop] == stream)
        return self._ids[mine], self._special[mine], self._punctuation[mine]


def is_punctuation(text: str) -> bool:
    bare = text.strip(_MARKS) or text.strip(_MARKS.replace("#", ""))
    return bool(bare) and not any(letter.isalnum() for letter in bare)
