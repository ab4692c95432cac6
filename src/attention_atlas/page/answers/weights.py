"""What are the weights of one input? edges/0/encoder · rows/0/L5H1/0-99 · layer/0/encoder/5"""

import re
from collections.abc import Iterator

import numpy as np

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.edges import make_edges, window_edges
from attention_atlas.page.answers.find import (
    check_input,
    count_tokens,
    find_layer,
    find_tower,
    is_long,
)
from attention_atlas.page.answers.moved import saved_as
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import text as wire
from attention_atlas.page.wire.constants import LARGEST_ANSWER, LONG_INPUT

_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")


def edges(
    subject: Subject, number: int, name: str, layer: int | None = None,
    rows: str | None = None, columns: str | None = None,
) -> wire.Edges:  # fmt: skip
    """Return the strongest keys of every row of a tower, of one layer, or of a window of it."""
    i, tower = check_input(subject, number), find_tower(subject, name)
    if layer is not None and rows is not None:
        asked = find_layer(tower, layer)
        n, m = (count_tokens(subject, i, stream) for stream in (asked.queries, asked.keys))
        window = (range_of(rows, n), range_of(columns or f"0-{m - 1}", m))
        return window_edges(subject, i, name, asked, window)
    layers = [known.layer for known in tower.layers]
    if is_long(subject, i, tower):
        raise PickError(
            f"input {i} has more than {LONG_INPUT} tokens; ask for a window of one layer, as in "
            f"edges/{i}/{name}/{layers[0]}/0-255/0-255, or for tiles"
        )
    return make_edges(subject, i, name, layers if layer is None else [layer], of=len(layers))


def rows(subject: Subject, number: int, name: str, part: str | None = None) -> wire.RowWeights:
    """Return the exact weights (N, M) of one head, of all rows or of a range such as 0-99."""
    i, head = check_input(subject, number), str(Head.parse(name))
    n, m = _size(subject, i, head)
    first, last = (0, n - 1) if part is None else range_of(part, n)
    if (last - first + 1) * m > LARGEST_ANSWER:
        most = LARGEST_ANSWER // m
        raise PickError(
            f"{head} has {n} × {m} weights; ask for at most {most} rows at once, "
            f"as in rows/{i}/{head}/0-{most - 1}"
        )
    return wire.RowWeights(i, head, first, subject.weights(i, head, list(range(first, last + 1))))


def layer(subject: Subject, number: int, name: str, which: int) -> wire.LayerWeights:
    """Return the exact weights (H, N, M) of all heads of a layer."""
    i, tower = check_input(subject, number), find_tower(subject, name)
    asked = tower.find(which)
    if asked is not None:
        n, m = (count_tokens(subject, i, stream) for stream in (asked.queries, asked.keys))
        if asked.heads * n * m > LARGEST_ANSWER:
            raise PickError(
                f"layer {which} has {asked.heads} × {n} × {m} weights, more than "
                f"{LARGEST_ANSWER}; ask for the rows of one head"
            )
    return wire.LayerWeights(i, name, which, subject.layer_weights(i, which, name))


def saved_edges(saving: Saving) -> Iterator[str]:
    """Yield the paths of all towers of all saved inputs: weights, and what the page shows."""
    for number in saving.inputs:
        for tower in saving.subject.towers:
            if not is_long(saving.subject, number, tower):
                path = f"edges/{number}/{tower.name}"
                yield path
                yield from saved_as(saving, path, number, tower.name)


def saved_rows(saving: Saving) -> Iterator[str]:
    """Yield the paths of whole rows of every head, except where the edges are exact already.

    Those of weights, and of what the page shows.
    """
    if not saving.exact:
        return
    subject = saving.subject
    for number in saving.inputs:
        rounded = {
            tower.name: ["", *saved_as(saving, "", number, tower.name)]
            for tower in subject.towers
            if not is_long(subject, number, tower)
            and edges(subject, number, tower.name).weight.dtype != np.float32
        }
        for tower, layer, head in saving.heads():
            n, m = (count_tokens(subject, number, name) for name in (layer.queries, layer.keys))
            for before in rounded.get(tower.name, ()):
                yield from _in_ranges(f"{before}rows/{number}/{head}", n, m)


def _in_ranges(path: str, n: int, m: int) -> Iterator[str]:
    """Yield the path of all rows (n, m) of a head, or those of ranges that fit into an answer."""
    step = max(1, LARGEST_ANSWER // m)
    if n <= step:
        yield path
        return
    ranges = ((first, min(n, first + step) - 1) for first in range(0, n, step))
    yield from (f"{path}/{first}-{last}" for first, last in ranges)


def _size(subject: Subject, i: int, name: str) -> tuple[int, int]:
    """Return how many queries and keys a head has."""
    head = Head.parse(name)
    tower = find_tower(subject, head.tower) if head.tower else subject.towers[0]
    layer = tower.find(head.layer)
    if layer is None or head.head >= layer.heads or (not head.tower and len(subject.towers) > 1):
        subject.weights(i, head, [0])  # raises an error that says which heads there are
        raise PickError(f"there is no {head}")
    return count_tokens(subject, i, layer.queries), count_tokens(subject, i, layer.keys)


def range_of(part: str, n: int) -> tuple[int, int]:
    """Return the first and the last number of a range such as 0-99, within 0 to n − 1."""
    match = _RANGE.fullmatch(part)
    if not match or not int(match[1]) <= int(match[2]) < n:
        raise PickError(f"{part[:40]!r} is no range of rows; give first-last within 0-{n - 1}")
    return int(match[1]), int(match[2])
