"""How does a model read an input of an atlas again, token by token as it was captured?

Texts and pictures are in the atlas. Where the model wrote tokens itself (`generate`, the target of
an encoder–decoder), the stored tokens are read, so that nothing is written again.
"""

from typing import Any

import numpy as np
import pandas as pd

from attention_atlas.models.encode import Encoded, encode
from attention_atlas.models.inputs import Input
from attention_atlas.models.load import Loaded
from attention_atlas.models.signature import signature
from attention_atlas.names.errors import InputError
from attention_atlas.store.reader import StoredAtlas


def encode_stored(atlas: StoredAtlas, number: int, loaded: Loaded) -> Encoded:
    """Encode an input of an atlas for its model; refuse it if that gives other tokens."""
    row, tokens = atlas.inputs().iloc[number], atlas.tokens(number)
    truncate = bool(atlas.manifest.options.get("truncate"))
    item = encode(loaded, _input(atlas, number, row, tokens, loaded), truncate=truncate)
    for stream, made in item.streams.items():
        stored = tokens[tokens["stream"] == stream]["id"].tolist()
        if stored and stored != made.id:
            raise InputError(
                f"{loaded.name} reads input {number} as other tokens than those of the atlas; "
                "add the text again, and edit that"
            )
    return item


def _input(
    atlas: StoredAtlas, number: int, row: Any, tokens: pd.DataFrame, loaded: Loaded
) -> Input:
    written = int(row["prompt"]) >= 0 or signature(loaded.model).two_sided
    ids = _ids(tokens) if written or row["kind"] == "tensors" else None
    if ids is not None:
        return Input("tensors", tensors=ids)
    if row["kind"] in ("text", "pair"):
        second = row["second"] if row["kind"] == "pair" else None
        return Input(row["kind"], text=row["text"], second=second)
    if row["kind"] in ("image", "image-text"):
        count = len(list(row["images"]))
        pictures = tuple(atlas.picture(number, image) for image in range(count))
        text, second = (_text(row[name]) for name in ("text", "second"))
        return Input(row["kind"], text, second, pictures)
    raise InputError(
        f"input {number} is of kind {row['kind']}, which an atlas does not keep, so the model "
        "cannot read it again; edit an input of text or pictures"
    )


def _text(cell: Any) -> str | None:
    return cell if isinstance(cell, str) else None


def _ids(tokens: pd.DataFrame) -> dict[str, Any] | None:
    """Return the stored tokens as ready-made tensors; None if some stream is not of tokens."""
    names = {"text": "input_ids", "encoder": "input_ids", "decoder": "decoder_input_ids"}
    ids: dict[str, Any] = {}
    for stream, part in tokens.groupby("stream", sort=False):
        numbers = part["id"].to_numpy(np.int64)
        if str(stream) not in names or (numbers < 0).any():
            return None
        ids[names[str(stream)]] = numbers[None]
    return ids if "input_ids" in ids else None
