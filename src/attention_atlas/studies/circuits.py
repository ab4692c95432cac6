"""What do heads write, whom do they read, what do they fetch? Scores beside those of attention."""

import numpy as np
import numpy.typing as npt

from attention_atlas.lab.stored_input import encode_stored
from attention_atlas.measure.run import CHANCES, Extra, Ready
from attention_atlas.measure.scores import (
    composition,
    output_alike,
    output_rank,
    ov_copying,
    retrieval,
)
from attention_atlas.models.load import Loaded
from attention_atlas.record.prove.receipt import try_ways
from attention_atlas.record.write.head_matrices import HeadMatrices, head_matrices
from attention_atlas.record.write.needles import capture_needles
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas

Floats = npt.NDArray[np.floating]
SAMPLE = 16  # inputs whose outputs are looked at
ROWS = 96  # tokens of each


def output_scores(atlas: StoredAtlas, seed: int = 0) -> list[Extra]:
    """Score the outputs of heads: effective rank, and the nearest head; [] if none are kept."""
    if not any(True for _ in _kept(atlas)) or "value" not in atlas.manifest.keep:
        return []
    known = atlas.manifest.kept_inputs
    numbers = np.arange(len(atlas)) if known is None else np.array(sorted(known))
    drawn = np.sort(np.random.default_rng(seed).permutation(numbers)[:SAMPLE])
    ranks, chances, alike = zip(*(_of_input(atlas, int(i)) for i in drawn), strict=True)
    rank, near = output_rank, output_alike
    return [
        Extra(rank.NAME, rank.TITLE, rank.FORMULA, rank.SOURCE, np.array(ranks),
              np.nanmean(np.array(chances), 0), CHANCES["even"], rank.BOUNDS),
        Extra(near.NAME, near.TITLE, near.FORMULA, near.SOURCE, np.array(alike),
              np.zeros(len(alike[0])), CHANCES["zero"], near.BOUNDS),
    ]  # fmt: skip


def _kept(atlas: StoredAtlas) -> "list[tuple[Tower, Layer]]":
    return [
        (tower, layer)
        for tower in atlas.towers
        for layer in tower.layers
        if atlas.output.has(tower.name, layer.layer)
    ]


def _of_input(atlas: StoredAtlas, number: int) -> tuple[Floats, Floats, Floats]:
    """Return effective rank, its chance and the nearest cosine of every head for one input."""
    ranks, chances, alike = [], [], []
    kept = _kept(atlas)
    for tower in atlas.towers:
        outputs: list[Floats] = []
        for layer in tower.layers:
            if (tower, layer) not in kept:
                ranks.append(np.full(layer.heads, np.nan))
                chances.append(ranks[-1])
                outputs.append(np.zeros((layer.heads, 1, 1)))
                continue
            moved, even, matrix = _moved(atlas, number, tower, layer)
            root = output_rank.root(matrix)
            ranks.append(output_rank.effective_rank(moved @ root))
            chances.append(output_rank.effective_rank(even @ root))
            outputs.append(moved @ matrix)
        alike.append(_nearest(outputs))
    return np.concatenate(ranks), np.concatenate(chances), np.concatenate(alike)


def _moved(
    atlas: StoredAtlas, number: int, tower: Tower, layer: Layer
) -> tuple[Floats, Floats, Floats]:
    """Return what heads move, (H, R, E), as they look and evenly, and their output matrices."""
    _, n, _ = atlas.shape(number, layer.layer, tower.name)
    rows = np.unique(np.linspace(0, n - 1, min(n, ROWS)).astype(int))
    prefix = f"{tower.name}." if len(atlas.towers) > 1 else ""
    names = [f"{prefix}L{layer.layer}H{head}" for head in range(layer.heads)]
    weights = atlas.rows(number, layer.layer, tower.name, None, rows.tolist())
    seen, _ = atlas.layer_terms(names[0], number, rows)
    flat = seen / np.maximum(seen.sum(-1, keepdims=True), 1)
    values = np.stack([atlas.values(name, number) for name in names]).astype(np.float64)
    matrix = atlas.output.projection(tower.name, layer.layer).matrix.astype(np.float64)
    return weights @ values, flat @ values, matrix


def _nearest(outputs: list[Floats]) -> Floats:
    """Return the nearest cosine over all heads of a tower whose outputs have one shape."""
    shapes = [output.shape[1:] for output in outputs]
    found = []
    for output, shape in zip(outputs, shapes, strict=True):
        if shape == (1, 1):
            found.append(np.full(len(output), np.nan))
            continue
        same = [other for other, size in zip(outputs, shapes, strict=True) if size == shape]
        place = sum(len(other) for other in same[: [one is output for one in same].index(True)])
        every = output_alike.nearest(output_alike.cosines(np.concatenate(same)))
        found.append(every[place : place + len(output)])
    return np.concatenate(found)


def circuit_scores(atlas: StoredAtlas, loaded: Loaded, seed: int = 0) -> list[Ready]:
    """Score the weights of heads: copying, and composition with earlier heads."""
    if not _kept(atlas):
        return []
    trial = try_ways(loaded, [encode_stored(atlas, 0, loaded)], seed)
    return weight_scores(atlas, head_matrices(trial))


def weight_scores(atlas: StoredAtlas, matrices: dict[str, HeadMatrices]) -> list[Ready]:
    """Score the matrices of heads, `tower.Lnumber` → those of a layer."""
    copying, composed = [], {side: [] for side in composition.SIDES}  # type: ignore[var-annotated]
    chance = []
    for tower in atlas.towers:
        layers = [_circuit(atlas, tower, layer, matrices) for layer in tower.layers]
        for layer, circuit in zip(tower.layers, layers, strict=True):
            none = np.full(layer.heads, np.nan)
            copying.append(none if circuit is None else ov_copying.copying(
                circuit.value, circuit.output))  # fmt: skip
            wide = np.nan if circuit is None else circuit.output.shape[-1] ** -0.5
            chance.append(np.full(layer.heads, wide))
        whole = [circuit for circuit in layers if circuit is not None]
        pairs = composition.composition(whole)
        for side, table in pairs.items():
            best = iter(np.split(composition.strongest(table)[0],
                                 np.cumsum([len(one.query) for one in whole])[:-1]))  # fmt: skip
            composed[side] += [
                np.full(layer.heads, np.nan) if circuit is None else next(best)
                for layer, circuit in zip(tower.layers, layers, strict=True)
            ]
    even = np.concatenate(chance)
    ready = [_ready(atlas, ov_copying.NAME, ov_copying.TITLE, ov_copying.FORMULA,
                    ov_copying.SOURCE, np.concatenate(copying), np.zeros(len(even)),
                    ov_copying.BOUNDS)]  # fmt: skip
    for side, word in composition.SIDES.items():
        ready.append(_ready(
            atlas, f"{side}-composition", f"{word} composition", composition.FORMULA.format(word),
            composition.SOURCE, np.concatenate(composed[side]), even, (0.0, 1.0),
        ))  # fmt: skip
    return ready


def _ready(
    atlas: StoredAtlas, name: str, title: str, formula: str, source: str,
    values: Floats, chance: Floats, bounds: tuple[float, float],
) -> Ready:  # fmt: skip
    none = np.full(len(values), np.nan)
    columns = np.stack([values, none, none, np.full(len(values), len(atlas)), chance], 1)
    words = "matrices that have nothing to do with each other"
    return Ready(name, title, formula, source, columns, words, bounds)


def _circuit(
    atlas: StoredAtlas, tower: Tower, layer: Layer, matrices: dict[str, HeadMatrices]
) -> composition.CircuitLayer | None:
    found = matrices.get(f"{tower.name}.L{layer.layer}")
    if found is None or not atlas.output.has(tower.name, layer.layer):
        return None
    if found.query is None or found.key is None or found.value is None:
        return None
    output = atlas.output.projection(tower.name, layer.layer).matrix.astype(np.float64)
    share = layer.heads // layer.groups
    key, value = (np.repeat(side, share, 0) for side in (found.key, found.value))
    if value.shape[-1] != output.shape[-1] or found.query.shape[-1] != output.shape[-1]:
        return None  # it reads another stream than it writes to
    return composition.CircuitLayer(found.query, key, value, output)


def retrieval_score(atlas: StoredAtlas, loaded: Loaded, seed: int = 0) -> Extra | None:
    """Hide needles and see which heads fetch them; None for models that do not write text."""
    causal = len(atlas.towers) == 1 and atlas.towers[0].role == "causal"
    if not causal or loaded.tokenizer is None or "id" not in atlas.tokens():
        return None
    needles = capture_needles(atlas, loaded, seed)
    tower = atlas.towers[0]
    values = [
        np.concatenate([
            retrieval.retrieved(
                needles.atlas.rows(number, layer.layer, tower.name, None, rows.tolist()), wanted
            )
            for layer in tower.layers
        ])
        for number, (rows, wanted) in enumerate(zip(needles.rows, needles.wanted, strict=True))
    ]  # fmt: skip
    chance = np.full(len(values[0]), retrieval.by_chance(needles.rows))
    return Extra(
        retrieval.NAME, retrieval.TITLE, retrieval.FORMULA, retrieval.SOURCE, np.array(values),
        chance, "the strongest key is any of those that are seen", retrieval.BOUNDS,
    )  # fmt: skip
