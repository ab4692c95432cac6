"""What are the tokens of one input? input/0"""

from collections.abc import Iterator

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
    raw, special = frame["text"].tolist(), frame["special"].tolist()
    readable = shown(raw, special)
    texts = readable if prettify else [visible(text) for text in raw]
    marks = [is_punctuation(text) for text in readable]
    columns = [frame[c].tolist() for c in ("id", "segment", "word", "row", "column", "position")]
    tokens = [
        wire.TokenInfo(
            text, token, int(number), bool(flag), int(segment), int(word), int(row), int(column),
            0 <= prompt <= int(position), mark and not flag,
        )
        for text, token, flag, mark, number, segment, word, row, column, position in zip(
            texts, raw, special, marks, *columns, strict=True
        )
    ]  # fmt: skip
    image, box = places(frame) or (None, None)
    return wire.Stream(name, tokens, image, box)
