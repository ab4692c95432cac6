"""What do heads and tokens add to a logit? logit/0/last/next · logit/0/7/262/318"""

import re

import numpy as np

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.find import check_input
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import text as wire
from attention_atlas.store.attribution import Attribution
from attention_atlas.store.reader import StoredAtlas

NEXT = "next"  # the token that follows in the text
_NUMBER = re.compile(r"\d{1,9}")


def logit(
    subject: Subject, number: int, position: str, token: str, against: str | None = None
) -> wire.LogitAdds:
    """Return what each head adds to a logit, or to a difference of two, from each token."""
    i = check_input(subject, number)
    if not isinstance(subject, StoredAtlas):
        raise PickError("plain attention has no logits; capture the model: aa.capture(…)")
    place = -1 if position == "last" else _number(position, "position")
    wanted = None if token == NEXT else _number(token, "token")
    other = None if against is None else _number(against, "token")
    found = subject.attribution(i, wanted, other, place)
    readout = subject.output.readout
    first = next(layer for layer in found.layers if layer.tower == readout.tower)
    tower = next(known for known in subject.towers if known.name == first.tower)
    queries = tower.layers[0].queries

    def text(of: int) -> str:
        if readout.classes is not None:
            return readout.classes[of] if of < len(readout.classes) else str(of)
        tokens = subject.tokens()
        same = tokens[tokens["id"] == of]["text"]
        return str(same.iloc[0]) if len(same) else f"token {of}"

    return wire.LogitAdds(
        i, found.position, int(found.token), text(int(found.token)), other,
        "" if other is None else text(other), queries, readout.classes,
        [name for layer in found.layers for name in layer.heads],
        [layer.keys for layer in found.layers for _ in layer.heads], _padded(found),
        list(found.missing),
    )  # fmt: skip


def _padded(found: Attribution) -> np.ndarray:
    most = max(layer.adds.shape[1] for layer in found.layers)
    rows = [np.pad(layer.adds, ((0, 0), (0, most - layer.adds.shape[1]))) for layer in found.layers]
    return np.concatenate(rows).astype(np.float32)


def _number(word: str, what: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise PickError(f"{word[:40]!r} is no {what}; give its number, from 0")
    return int(word)
