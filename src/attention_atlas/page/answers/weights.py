"""What are the weights of one input? edges/0/encoder · rows/0/L5H1/0-99 · layer/0/encoder/5"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.edges import make_edges, window_edges
from attention_atlas.page.answers.find import check_input, count_tokens, find_tower
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import text as wire
from attention_atlas.page.wire.constants import LARGEST_ANSWER, LONG_INPUT
from attention_atlas.store.manifest import Tower

_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")


def edges(
    subject: Subject, number: int, name: str, layer: int | None = None,
    rows: str | None = None, columns: str | None = None,
) -> wire.Edges:  # fmt: skip
    """Return the strongest keys of every row of a tower, of one layer, or of a window of it."""
    i, tower = check_input(subject, number), find_tower(subject, name)
    if layer is not None and rows is not None:
        _, n, m = subject.shape(i, layer, name)
        window = (range_of(rows, n), range_of(columns or f"0-{m - 1}", m))
        return window_edges(subject, i, name, layer, window)
    layers = [known.layer for known in tower.layers]
    _refuse_long(subject, i, tower, layers if layer is None else [layer])
    return make_edges(subject, i, name, layers if layer is None else [layer], of=len(layers))


def _refuse_long(subject: Subject, i: int, tower: Tower, layers: Sequence[int]) -> None:
    """Raise a PickError if all edges of an input would take minutes and gigabytes."""
    _, n, m = subject.shape(i, layers[0], tower.name)
    if max(n, m) > LONG_INPUT:
        last = LONG_INPUT // 4 - 1
        raise PickError(
            f"input {i} has {n} × {m} weights in each head; ask for a window of at most "
            f"{LARGEST_ANSWER} weights of one layer, as in "
            f"edges/{i}/{tower.name}/{layers[0]}/0-{last}/0-{last}, or for tiles"
        )


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
    """Yield the paths of all towers of all saved inputs."""
    for number in saving.inputs:
        yield from (f"edges/{number}/{tower.name}" for tower in saving.subject.towers)


def saved_rows(saving: Saving) -> Iterator[str]:
    """Yield the paths of whole rows of every head, except where the edges are exact already."""
    if not saving.exact:
        return
    subject = saving.subject
    for number in saving.inputs:
        rounded = {
            tower.name
            for tower in subject.towers
            if edges(subject, number, tower.name).weight.dtype != np.float32
        }
        for tower, layer, head in saving.heads():
            if tower.name not in rounded:
                continue
            n, m = (count_tokens(subject, number, name) for name in (layer.queries, layer.keys))
            step = max(1, LARGEST_ANSWER // m)
            if n <= step:
                yield f"rows/{number}/{head}"
                continue
            ranges = ((first, min(n, first + step) - 1) for first in range(0, n, step))
            yield from (f"rows/{number}/{head}/{first}-{last}" for first, last in ranges)


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
