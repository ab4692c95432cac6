"""What are the tokens of each input? Read once, so that a pass over all inputs stays linear."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.names.token_text import is_punctuation, shown_by_stream
from attention_atlas.store.patch_places import places, seated


class TokenTable:
    """Ids and marks of the tokens of every input and stream, from a table like `atlas.tokens()`."""

    def __init__(self, frame: pd.DataFrame):
        self._inputs = frame["input"].to_numpy()
        self._streams = frame["stream"].to_numpy()
        self._ids = frame["id"].to_numpy(np.int64)
        self._special = frame["special"].to_numpy(bool)
        streams = frame["stream"].astype(str).tolist()
        texts = shown_by_stream(streams, frame["text"].tolist(), self._special.tolist())
        marks = {text: is_punctuation(text) for text in set(texts)}
        self._punctuation = np.array([marks[text] for text in texts], bool) & ~self._special
        self._places: npt.NDArray[np.int64] | None = None
        image_and_box = places(frame)
        if image_and_box is not None:
            cells = frame[["row", "column"]].to_numpy(np.int64)
            cells = np.where(seated(frame)[:, None], cells, -1)
            self._places = np.column_stack([image_and_box[0].astype(np.int64), cells])

    def of(
        self, input: int, stream: str
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Get ids, special and punctuation of an input's tokens; (M,) each."""
        start, stop = np.searchsorted(self._inputs, [input, input + 1])
        tokens = start + np.flatnonzero(self._streams[start:stop] == stream)
        return self._ids[tokens], self._special[tokens], self._punctuation[tokens]

    def places(self, input: int, stream: str) -> npt.NDArray[np.int64] | None:
        """Get picture, row and column of each token, -1 where it is no patch; returns (M, 3)."""
        if self._places is None:
            return None
        start, stop = np.searchsorted(self._inputs, [input, input + 1])
        tokens = start + np.flatnonzero(self._streams[start:stop] == stream)
        return np.asarray(self._places[tokens])


def what_shows(frame: pd.DataFrame) -> set[str]:
    """Tell what the tokens of a stream show: "patches", and "mixed" if there are words as well."""
    patch = seated(frame)
    if not patch.any():
        return set()
    words = ~patch & ~frame["special"].to_numpy(bool) & (frame["id"].to_numpy() >= 0)
    return {"patches", "mixed"} if words.any() else {"patches"}
