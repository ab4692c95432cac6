"""Which tokens of an input are sinks? sinks/0/decoder"""

import numpy as np

from attention_atlas.names.head import Head
from attention_atlas.page.answers.find import check_input, find_tower, is_long
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import text as wire
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.sinks import column_mass, even_mass, sinks_of


def sinks(subject: Subject, number: int, name: str) -> wire.Sinks:
    """Return the keys of an input that are sinks of some layer of a tower: of its heads' mean."""
    i, tower = check_input(subject, number), find_tower(subject, name)
    stream = tower.layers[0].keys
    layers = [layer for layer in tower.layers if layer.keys == stream]
    if is_long(subject, i, tower):  # tiles find those of each head
        layers = []
    shares: dict[int, list[tuple[int, float]]] = {}
    for layer in layers:
        mass, even = layer_mass(subject, i, tower, layer)
        for key in sinks_of(mass.mean(0), even).tolist():
            shares.setdefault(key, []).append(
                (layer.layer, float(mass.mean(0)[key] / mass.mean(0).sum()))
            )
    tokens = subject.tokens(i, stream)
    found = [
        wire.Sink(
            key, str(tokens["text"].iloc[key]), sink_kind(tokens, key),
            [layer for layer, _ in shares[key]], max(share for _, share in shares[key]),
        )
        for key in sorted(shares)
    ]  # fmt: skip
    return wire.Sinks(i, tower.name, stream, found)


def layer_mass(
    subject: Subject, input: int, tower: Tower, layer: Layer
) -> tuple[np.ndarray, np.ndarray]:
    """Return the attention that keys get in each head of a layer (H, M), and evenly (M,)."""
    weights = subject.rows(input, layer.layer, tower.name)
    if isinstance(subject, StoredAtlas) and not subject.has("weights", layer.layer, tower.name):
        n, m = weights.shape[1:]
        prefix = tower.name if len(subject.towers) > 1 else ""
        seen = subject.seen(input, str(Head(prefix, layer.layer, 0)), range(n), range(m))
    else:
        seen = np.asarray((weights > 0).any(0))
    return column_mass(weights, seen), even_mass(seen)


def sink_kind(tokens: object, key: int) -> str:
    """Name what a sink is: the first token, a special token, a patch at the border, …"""
    frame = tokens
    row = frame.iloc[key]  # type: ignore[attr-defined]
    if "row" in frame and row["row"] >= 0:  # type: ignore[operator]
        edges = [(frame[side].max(), row[side]) for side in ("row", "column")]  # type: ignore[index]
        return "patch at the border" if any(at in (0, last) for last, at in edges) else "patch"
    if row["special"]:
        return "special token"
    if key == 0:
        return "first token"
    text = str(row["text"]).strip("Ġ▁# ")
    return "punctuation" if text and not any(c.isalnum() for c in text) else "token"


def saved_sinks(saving: Saving) -> list[str]:
    """Return the paths of all towers of all saved inputs."""
    return [
        f"sinks/{number}/{tower.name}"
        for number in saving.inputs
        for tower in saving.subject.towers
    ]
