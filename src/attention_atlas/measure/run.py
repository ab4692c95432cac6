"""How does an atlas get its scores.parquet?

One pass over the corpus (`collect`), then what was brought from elsewhere: scores that need a live
model or a file of the person's arrive as `Extra`s, one value an input and head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from attention_atlas.measure import boot
from attention_atlas.measure.collect import Collected, Gathering, collect
from attention_atlas.measure.kinds import KINDS
from attention_atlas.measure.look import Floats
from attention_atlas.measure.measure import ANY, Bounds, Measure, range_words
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.orders import order_rows
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.measure.weights import alike_rows
from attention_atlas.names.head import Head
from attention_atlas.names.progress import bar
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.scores import Scores, read_scores, write_scores

CHANCES = {
    "shuffled": "the weights of each row dealt out at random among the keys it may see",
    "even": "a head that is even over the keys it may see",
    "zero": "nought",
    "none": "not known",
}


@dataclass(frozen=True)
class Extra:
    """A score from elsewhere: values (inputs, heads), NaN: no answer, heads as atlas.heads()."""

    name: str
    title: str
    formula: str
    source: str
    values: Floats
    chance: Floats | None = None  # (heads,)
    chance_means: str = CHANCES["none"]
    bounds: Bounds = ANY


def measure_atlas(
    atlas: StoredAtlas, extras: Sequence[Extra] = (), *, seed: int = 0, again: bool = False,
    progress: bool = True,
) -> Scores:  # fmt: skip
    """The scores of an atlas: read if they are there, with extras added, else made."""
    there = None if again else read_scores(atlas.path, atlas.manifest)
    if there is not None and there.options.get("seed") != seed:
        there = None
    if there is not None and not extras:
        return there
    made = there or _made(atlas, seed, progress)
    scores = _with(made, atlas, extras, seed)
    write_scores(atlas.path, atlas.manifest, scores)
    return scores


def measure_some(atlas: StoredAtlas, inputs: set[int], seed: int = 0) -> Scores:
    """The scores of some inputs of an atlas; they are not kept."""
    return _made(atlas, seed, False, inputs)


def _made(atlas: StoredAtlas, seed: int, progress: bool, only: set[int] | None = None) -> Scores:
    layers = sum(len(tower.layers) for tower in atlas.towers)
    count = atlas.manifest.inputs if only is None else len(only)
    with bar("measuring", count * layers, progress) as draw:
        collected = collect(atlas, MEASURES, seed, draw, only)
    rows = [row for one in collected for row in score_rows(atlas, one)]
    kinds = [row for one in collected for row in kind_rows(atlas, one)]
    used = {measure.name: told(measure) for one in collected for measure in one.measures}
    ordered, words = order_rows(atlas, seed)
    alike, meant = alike_rows(atlas)
    rows, used = rows + ordered + alike, used | words | meant
    return Scores(pd.DataFrame(rows), pd.DataFrame(kinds), used, {"seed": seed, "inputs": count})


def told(measure: Measure) -> dict[str, str]:
    """What goes with a score's name."""
    return {
        "title": measure.title,
        "formula": measure.formula,
        "source": measure.source,
        "chance": CHANCES[measure.chance],
        "range": range_words(measure.bounds),
    }


def score_rows(atlas: StoredAtlas, one: Collected) -> list[dict[str, Any]]:
    shape = len(one.measures), one.layer.heads
    bounds = np.repeat([measure.bounds for measure in one.measures], one.layer.heads, axis=0)
    low, high = one.scores.interval(bounds)
    columns = [array.reshape(shape) for array in (one.scores.value, low, high, one.scores.counts)]
    return [
        _row(head_name(atlas, one.tower, one.layer, head), measure.name,
             [*(column[place, head] for column in columns), one.chances[place, head]])
        for place, measure in enumerate(one.measures)
        for head in range(one.layer.heads)
        if columns[3][place, head]
    ]  # fmt: skip


def _row(head: str, measure: str, figures: Sequence[float]) -> dict[str, Any]:
    value, low, high, n, chance = figures
    return {
        "head": head, "measure": measure, "value": float(value), "low": float(low),
        "high": float(high), "n": int(n), "chance": float(chance),
    }  # fmt: skip


def kind_rows(atlas: StoredAtlas, one: Collected) -> list[dict[str, Any]]:
    rows = []
    for head in range(one.layer.heads):
        found = one.tally.of(head)
        if found is None:
            continue
        kind = asdict(found.kind)
        evidence = kind.pop("evidence")
        row = {"head": head_name(atlas, one.tower, one.layer, head), "kind": kind.pop("name")}
        row |= kind | {"agree": found.agree, "n": found.inputs, "telling": list(found.telling)}
        row |= {f"evidence {shape}": value for shape, value in evidence.items()}
        rows.append(row | {f"inputs {name}": found.counts[name] for name in KINDS})
    return rows


def head_name(atlas: StoredAtlas, tower: Tower, layer: Layer, head: int) -> str:
    return str(Head(tower.name if len(atlas.towers) > 1 else "", layer.layer, head))


def _with(scores: Scores, atlas: StoredAtlas, extras: Sequence[Extra], seed: int) -> Scores:
    """Extras take the place of scores of the same name."""
    if not extras:
        return scores
    names = [str(name) for name in atlas.heads()["head"]]
    given = {extra.name for extra in extras}
    kept = scores.table[~scores.table["measure"].isin(given)]
    rows = [row for extra in extras for row in _extra_rows(names, extra, seed)]
    told_of: Mapping[str, dict[str, str]] = {
        extra.name: {
            "title": extra.title, "formula": extra.formula, "source": extra.source,
            "chance": extra.chance_means, "range": range_words(extra.bounds),
        }
        for extra in extras
    }  # fmt: skip
    table = pd.concat([kept, pd.DataFrame(rows)], ignore_index=True)
    return Scores(table, scores.kinds, {**scores.measures, **told_of}, scores.options)


def _extra_rows(names: list[str], extra: Extra, seed: int) -> list[dict[str, Any]]:
    mean = boot.Mean(len(names))
    mean.add(extra.values, boot.draws(seed, list(range(len(extra.values)))))
    low, high = mean.interval(np.tile(extra.bounds, (len(names), 1)))
    chance = np.full(len(names), np.nan) if extra.chance is None else extra.chance
    columns = (mean.value, low, high, mean.counts, chance)
    return [
        _row(name, extra.name, [column[place] for column in columns])
        for place, name in enumerate(names)
        if mean.counts[place]
    ]


def values_by_input(atlas: StoredAtlas, name: str, seed: int) -> tuple[Floats, Floats, Measure]:
    """(inputs, heads) and (heads,): one score of a small atlas input by input, and its chance."""
    measure = MEASURES[name]
    tokens = TokenTable(atlas)
    columns, chances = [], []
    for tower in atlas.towers:
        for layer in tower.layers:
            gathering = Gathering(atlas, tower, layer, [measure], seed)
            kept: dict[int, Floats] = {}
            for shard in range(len(atlas.manifest.shards)):
                kept |= gathering.add_shard(shard, tokens)
            columns.append(np.stack([kept[number][0] for number in sorted(kept)]))
            chances.append(gathering.collected().chances[0])
    return np.concatenate(columns, 1), np.concatenate(chances), measure
