"""What are the tokens of one input? input/0"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from attention_atlas.names.token_text import is_punctuation, shown, visible
from attention_atlas.page.answers.about import records
from attention_atlas.page.answers.find import check_input, listed_input
from attention_atlas.page.answers.pictures import picture_infos
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import text as wire
from attention_atlas.store.patch_places import places
from attention_atlas.store.reader import StoredAtlas


def input_info(subject: Subject, number: int) -> wire.InputInfo:
    """Return one input: the tokens of its streams, and its pictures."""
    i = check_input(subject, number)
    place = listed_input(subject, i)
    row = records(subject.inputs().iloc[place : place + 1])[0]
    frame = subject.tokens(i)
    prettify = getattr(subject, "prettify", True)
    streams = [
        _stream(str(name), frame[frame["stream"] == name], int(row["prompt"]), prettify)
        for name in frame["stream"].unique()
    ]
    infos = picture_infos(subject, place) if isinstance(subject, StoredAtlas) else []
    return wire.InputInfo(
        i, row.get("text") or "", row.get("second"), int(row["boundary"]), streams, infos
    )


def saved_inputs(saving: Saving) -> Iterator[str]:
    """Yield the paths of all saved inputs."""
    return (f"input/{number}" for number in saving.inputs)


def _stream(name: str, frame: pd.DataFrame, prompt: int, prettify: bool) -> wire.Stream:
    image, box = places(frame) or (None, None)
    return wire.Stream(name, _columns(frame, prompt, prettify), image, box)


def _columns(frame: pd.DataFrame, prompt: int, prettify: bool) -> wire.TokenColumns:
    """Return the tokens of a stream as columns; equal tokens are read and sent once."""
    known: dict[tuple[str, int, bool], int] = {}
    columns = (frame[name].tolist() for name in ("text", "id", "special"))
    entry = [known.setdefault(token, len(known)) for token in zip(*columns, strict=True)]
    raw = [text for text, _, _ in known]
    ids = [number for _, number, _ in known]
    special = [flag for _, _, flag in known]
    readable = shown(raw, special)
    marks = [
        is_punctuation(text) and not flag for text, flag in zip(readable, special, strict=True)
    ]
    small = np.uint16 if len(known) <= 2**16 else np.uint32
    patches = bool((frame["row"] >= 0).any() or (frame["column"] >= 0).any())
    generated = int((frame["position"] >= prompt).sum()) if prompt >= 0 else 0
    return wire.TokenColumns(
        readable if prettify else [visible(text) for text in raw], raw, np.array(ids, np.int32),
        np.array(special, np.uint8), np.array(marks, np.uint8), np.array(entry, small),
        frame["segment"].to_numpy(np.int16), frame["word"].to_numpy(np.int32),
        frame["row"].to_numpy(np.int32) if patches else None,
        frame["column"].to_numpy(np.int32) if patches else None,
        len(frame) - generated,
    )  # fmt: skip
