"""Are the tables of inputs and tokens what the manifest says, and what everything relies on?"""

from pathlib import Path

import numpy as np
import pandas as pd

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.manifest import Manifest
from attention_atlas.store.sealed_table import frame_of

INPUTS, TOKENS = "inputs.parquet", "tokens.parquet"
PICTURE_SUMS = "picture_checksums"  # a column of the inputs, where they have pictures
_TODO = "capture the atlas again"
_PLACED = ("id", "start", "end", "segment", "word", "row", "column")  # −1: it has none
_NEEDED = {
    INPUTS: {"input": "whole", "kind": "text", "text": "text", "images": "texts"},
    TOKENS: {
        "token": "whole", "input": "whole", "stream": "text", "position": "whole", "text": "text",
        "special": "flag", **dict.fromkeys(_PLACED, "whole"),
    },
}  # fmt: skip
_OTHERS = {
    INPUTS: {
        "second": "text", "source": "text", "boundary": "whole", "prompt": "whole",
        "truncated": "flag", PICTURE_SUMS: "texts",
    },
    TOKENS: {
        "image": "whole", "left": "number", "top": "number", "right": "number", "bottom": "number",
        "brightness": "number", "hue": "number", "saturation": "number",
    },
}  # fmt: skip
_NO_VALUE = {
    INPUTS: ("text", "images", "second", "source", PICTURE_SUMS),
    TOKENS: (*_PLACED, *_OTHERS[TOKENS]),
}
_BOX = {"image", "left", "top", "right", "bottom"}


def read_captured(folder: Path, manifest: Manifest, name: str) -> pd.DataFrame:
    """Read a table of a capture; raise a StoreError if it is damaged or not of this manifest."""
    path = folder / name
    table = files.read_table(path, manifest.tables[name], _TODO)
    others = {
        column: kind for column, kind in _OTHERS[name].items() if column in table.column_names
    }
    frame = frame_of(path, table, _NEEDED[name] | others, _TODO, _NO_VALUE[name])
    wrong = _wrong_inputs(frame, manifest) if name == INPUTS else _wrong_tokens(frame, manifest)
    if wrong:
        raise StoreError(f"{path} does not fit its manifest: {wrong}; {_TODO}")
    return frame


def _wrong_inputs(frame: pd.DataFrame, manifest: Manifest) -> str:
    if len(frame) != manifest.inputs:
        return f"it has {len(frame)} inputs instead of {manifest.inputs}"
    return "" if _counts_up(frame["input"]) else "its inputs are not numbered"


def _wrong_tokens(frame: pd.DataFrame, manifest: Manifest) -> str:
    if len(frame) != manifest.tokens:
        return f"it has {len(frame)} tokens instead of {manifest.tokens}"
    inputs = frame["input"].to_numpy()
    in_order = not len(inputs) or (
        inputs[0] >= 0 and inputs[-1] < manifest.inputs and bool((np.diff(inputs) >= 0).all())
    )
    if not (_counts_up(frame["token"]) and in_order):
        return "its tokens are not numbered"
    if len(_BOX & set(frame.columns)) not in (0, len(_BOX)):
        return "it has a part of the places of patches only"
    unknown = set(frame["stream"].unique()) - set(manifest.streams)
    if unknown:
        return f"it has a stream {min(unknown)[:40]!r}"
    starts = np.flatnonzero(_changes(frame)) if len(frame) else np.zeros(0, np.int64)
    lengths = np.diff([*starts, len(frame)])
    counted = np.arange(len(frame)) - np.repeat(starts, lengths)
    right = np.array_equal(frame["position"].to_numpy(), counted)
    return "" if right else "its tokens are not in the order of their positions"


def _changes(frame: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Tell where a new input or stream begins."""
    streams, inputs = pd.factorize(frame["stream"])[0], frame["input"].to_numpy()
    changed = (np.diff(inputs) != 0) | (np.diff(streams) != 0)
    return np.concatenate([[True], changed])


def _counts_up(column: pd.Series) -> bool:
    return np.array_equal(column.to_numpy(), np.arange(len(column)))
