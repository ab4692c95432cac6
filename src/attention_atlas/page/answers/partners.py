"""What does one token attend to, or what attends to it? partners/0/L5H1/query/7"""

import numpy as np

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.find import (
    check_input,
    count_tokens,
    find_layer,
    find_tower,
    is_long,
)
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import maps as wire
from attention_atlas.store.maps import SIDES
from attention_atlas.store.reader import StoredAtlas


def partners(subject: Subject, number: int, name: str, side: str, position: int) -> wire.Partners:
    """Return the weight of one token with every token of the other side, and which it can see."""
    i, head = check_input(subject, number), Head.parse(name)
    if not isinstance(subject, StoredAtlas):
        raise PickError("plain attention has no masks; capture the model: aa.capture(…)")
    if side not in SIDES:
        raise PickError(f"{side[:40]!r} is no side; give {' or '.join(SIDES)}")
    tower = find_tower(subject, head.tower or subject.towers[0].name)
    layer = find_layer(tower, head.layer)
    n, m = (count_tokens(subject, i, stream) for stream in (layer.queries, layer.keys))
    count = n if side == "query" else m
    if not 0 <= position < count:
        raise PickError(f"input {i} has no {side} {position}; it has 0 to {count - 1}")
    one = range(position, position + 1)
    rows, columns = (one, range(m)) if side == "query" else (range(n), one)
    if is_long(subject, i, tower):  # other columns are not computed
        weights = subject.window(i, layer.layer, tower.name, rows, columns, [head.head])
    else:
        weights = subject.rows(i, layer.layer, tower.name, [head.head], rows, columns)
    seen = subject.seen(i, head, rows, columns)
    return wire.Partners(weights.ravel(), seen.ravel().astype(np.uint8))
