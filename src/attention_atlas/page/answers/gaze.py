"""Where do heads look on a picture? gaze/0/encoder/5/3 · gaze/0/encoder/5/mean · …/rollout

Rollout estimates how much of each token of the first layer reaches a token, if every layer passes
on half of itself and half of what it looks at: the product of (mean over heads + identity) / 2.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.measure.arrows import marks
from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.edges import shown_of
from attention_atlas.page.answers.find import check_input, find_layer, find_tower
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import image as wire
from attention_atlas.page.wire.constants import LARGEST_ANSWER, UNIT
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.patch_places import seated

Float32 = npt.NDArray[np.float32]


def gaze(subject: Subject, number: int, name: str, which: int, how: str) -> wire.Gaze:
    """Return the weights (N, M) and marks (N,) of one head, or of all heads of a layer together."""
    i, tower = check_input(subject, number), find_tower(subject, name)
    layer = find_layer(tower, which)
    queries, keys = (subject.tokens(i, stream) for stream in (layer.queries, layer.keys))
    if len(queries) * len(keys) > LARGEST_ANSWER:
        raise PickError(
            f"layer {layer.layer} has {len(queries)} × {len(keys)} weights, more than "
            f"{LARGEST_ANSWER}; ask for some rows of one head"
        )
    weights = _weights(subject, i, tower, layer, how)
    special = keys["special"].to_numpy(bool)
    same = layer.queries == layer.keys
    strongest, mark = marks(weights, seated(queries), seated(keys), special, same)
    packed: npt.NDArray[Any] = np.rint(np.clip(weights, 0, 1) * UNIT).astype(np.uint16)
    if shown_of(subject) != "weights":
        packed = weights.astype(np.float32)
    return wire.Gaze(i, tower.name, layer.layer, how, packed, strongest, mark)


def _weights(subject: Subject, i: int, tower: Tower, layer: Layer, how: str) -> Float32:
    if how == "mean":
        return mean_of_heads(subject, i, tower, layer).astype(np.float32)
    if how == "rollout":
        return rollout(subject, i, tower, layer)
    if not (how.isascii() and how.isdigit() and len(how) < 6) or int(how) >= layer.heads:
        raise PickError(
            f"layer {layer.layer} has no head {how[:10]!r}; give 0 to {layer.heads - 1}, mean or "
            "rollout"
        )
    return np.asarray(subject.rows(i, layer.layer, tower.name, [int(how)])[0])


def mean_of_heads(subject: Subject, i: int, tower: Tower, layer: Layer) -> npt.NDArray[np.float64]:
    """Return the mean weights (N, M) over the heads of a layer; read one head at a time."""
    _, n, m = subject.shape(i, layer.layer, tower.name)
    total = np.zeros((n, m))
    for head in range(layer.heads):
        total += subject.rows(i, layer.layer, tower.name, [head])[0]
    return total / layer.heads


def rollout(subject: Subject, i: int, tower: Tower, layer: Layer) -> Float32:
    """Return the rollout (N, N) from a layer back to the first of its tower."""
    total: npt.NDArray[np.float64] | None = None
    for step in tower.layers:
        if not step.queries == step.keys == layer.queries:
            raise PickError(
                f"rollout needs the same tokens in every layer and layer {step.layer} of "
                f"{tower.name} has others than layer {layer.layer}; ask for mean or one head"
            )
        mean = mean_of_heads(subject, i, tower, step)
        passed = (mean / np.maximum(mean.sum(1, keepdims=True), 1e-12) + np.eye(len(mean))) / 2
        total = passed if total is None else passed @ total
        if step.layer == layer.layer:
            break
    assert total is not None
    return total.astype(np.float32)
