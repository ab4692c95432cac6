"""What goes into the softmax of one head? vectors/0/L5H1"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.find import check_input, find_tower, is_long
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import text as wire
from attention_atlas.page.wire.constants import LONG_INPUT
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas

SAVED_BYTES = 8_000_000  # of a saved neuron view; above that, only the picked layer is saved
MOST_FILES = 2_000  # of vectors in a folder, unless `exact` asks for all


def vectors(subject: Subject, number: int, name: str) -> wire.Vectors:
    """Return the queries, keys, values and logit terms of one head."""
    i, head = check_input(subject, number), Head.parse(name)
    if not isinstance(subject, StoredAtlas):
        raise PickError(
            "plain attention has no queries and keys; capture the model for them: "
            "aa.neuron_view(aa.capture(model, text))"
        )
    tower = find_tower(subject, head.tower or subject.towers[0].name)
    if is_long(subject, i, tower):
        raise PickError(
            f"input {i} has more than {LONG_INPUT} tokens, too many for all vectors of a head at "
            "once; ask for its tiles, or read atlas.queries and atlas.keys in Python"
        )
    query, key = subject.queries(head, i), subject.keys(head, i)
    terms = subject.terms(head, i)
    mask, seen = _mask(terms.seen)
    has_value = "value" in subject.manifest.keep
    return wire.Vectors(
        i, str(head), terms.scale, terms.softcap, terms.sink, mask, _sharing(subject, head),
        query, key, subject.values(head, i) if has_value else None, _short(terms.added), seen,
    )  # fmt: skip


def saved_vectors(saving: Saving) -> Iterator[str]:
    """Yield the vectors of all heads if asked for or if they fit, else of the picked layer."""
    atlas = saving.subject
    wanted = saving.exact or saving.folder or saving.picks.get("view") == "neuron"
    if not wanted or not isinstance(atlas, StoredAtlas):
        return
    known = [
        (tower, layer, head)
        for tower, layer, head in saving.heads()
        if all(atlas.has(what, layer.layer, tower.name) for what in ("query", "key"))
    ]
    if saving.folder and not saving.exact and len(list(saving.heads())) * len(atlas) > MOST_FILES:
        return
    alone = not saving.exact and not saving.folder
    if alone and _size(atlas, known, saving.inputs) > SAVED_BYTES:
        known = [entry for entry in known if saving.is_picked(*entry[:2])]
    for number in saving.inputs:
        long = {tower.name for tower in atlas.towers if is_long(atlas, number, tower)}
        yield from (
            f"vectors/{number}/{head}" for tower, _, head in known if tower.name not in long
        )


def _size(
    atlas: StoredAtlas, known: Sequence[tuple[Tower, Layer, str]], inputs: Sequence[int]
) -> int:
    """Return the size in bytes of the vectors of some heads."""
    size = 0
    for number in inputs:
        lengths = atlas.tokens(number)["stream"].value_counts()
        for _, layer, _ in known:
            n, m = int(lengths[layer.queries]), int(lengths[layer.keys])
            size += 4 * (layer.width * (n + m) + layer.value_width * m)
    return size


def _mask(seen: npt.NDArray[np.bool_]) -> tuple[Any, npt.NDArray[np.uint8] | None]:
    if seen.all():
        return "full", None
    if seen.shape[0] == seen.shape[1] and (seen == np.tri(len(seen), dtype=bool)).all():
        return "causal", None
    return "given", seen.astype(np.uint8)


def _short(added: npt.NDArray[np.float32] | None) -> npt.NDArray[np.float32] | None:
    """Return one row (1, M) if all rows are equal, else all (N, M)."""
    return added[:1] if added is not None and (added == added[:1]).all() else added


def _sharing(atlas: StoredAtlas, head: Head) -> list[str]:
    """Return the names of the heads that read the same key and value."""
    table, tower = atlas.heads(), head.tower or atlas.towers[0].name
    layer = table[(table["tower"] == tower) & (table["layer"] == head.layer)]
    group = layer[layer["number"] == head.head]["group"].iloc[0]
    return [str(name) for name in layer[layer["group"] == group]["head"]]
