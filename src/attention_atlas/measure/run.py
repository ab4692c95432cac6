"""How does an atlas get its scores.parquet?

One pass over the shards (`shards`), then the `Extra`s: scores that need a live model or a file,
given as one value an input and head.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from attention_atlas.engine.job import Engine
from attention_atlas.engine.local import Local
from attention_atlas.measure import boot
from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.definition import ANY, Bounds, Measure, range_words
from attention_atlas.measure.join import LayerScores, join
from attention_atlas.measure.kinds import KINDS
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.orders import order_rows
from attention_atlas.measure.read_blocks import ALL_CORES, MOST_ROWS, Machine
from attention_atlas.measure.resume import open_journal
from attention_atlas.measure.shard_jobs import measure_shards
from attention_atlas.measure.shards import Meter
from attention_atlas.measure.weights import alike_rows
from attention_atlas.models.threads import matrix_threads
from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.names.head import Head
from attention_atlas.names.progress import bar
from attention_atlas.store.cores import each
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.parts import Journal
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.scores import Scores, read_scores, write_scores

_log = logging.getLogger("attention_atlas")
_HERE = Local()
# While the atlas is open, with and without sinks.
_not_kept: WeakKeyDictionary[StoredAtlas, dict[bool, Scores]] = WeakKeyDictionary()
_NO_SINKS = "; without the sinks of each input, the other weights scaled to sum to one"
CHANCES = {
    "shuffled": "the weights of each row shuffled among the keys it may see",
    "even": "a head that is even over the keys it may see",
    "zero": "zero",
    "none": "not known",
}


@dataclass(frozen=True)
class Extra:
    """A score made elsewhere: values (inputs, heads), heads as in atlas.heads(), NaN: no answer."""

    name: str
    title: str
    formula: str
    source: str
    values: Floats
    chance: Floats | None = None  # (heads,)
    chance_means: str = CHANCES["none"]
    bounds: Bounds = ANY

    def figures(self, seed: int) -> "tuple[Floats, ...]":
        """Return value, low, high, n and chance of each head, (heads,) each."""
        count = self.values.shape[1]
        mean = boot.Mean(count)
        mean.add(self.values, boot.draws(seed, tuple(range(len(self.values)))))
        low, high = mean.interval(np.tile(self.bounds, (count, 1)))
        chance = np.full(count, np.nan) if self.chance is None else self.chance
        return mean.value, low, high, mean.counts, chance


@dataclass(frozen=True)
class Ready:
    """A score made elsewhere with its intervals: columns value, low, high, n, chance (heads, 5)."""

    name: str
    title: str
    formula: str
    source: str
    columns: Floats
    chance_means: str = CHANCES["none"]
    bounds: Bounds = ANY

    def figures(self, _seed: int) -> "tuple[Floats, ...]":
        """Return value, low, high, n and chance of each head, (heads,) each."""
        return tuple(self.columns.T)


def measure_atlas(
    atlas: StoredAtlas, extras: Sequence[Extra | Ready] = (), *, seed: int = 0, again: bool = False,
    progress: bool = True, keep: bool = True, machine: Machine = ALL_CORES,
    engine: Engine = _HERE, without_sinks: bool = False,
) -> Scores:  # fmt: skip
    """Read the scores of an atlas, or measure it if it has none; returns them with the extras.

    keep     write new scores into the folder; warns where it cannot be written to
    machine  what to compute with, and how many rows of a long input
    engine   where the shards are measured
    without_sinks  the sinks of each input are taken out of its weights first
    """
    known = None if again else known_scores(atlas, without_sinks)
    if known is not None and not _as_asked(known.options, seed, machine, atlas):
        known = None
    if known is not None and not extras:
        return known
    journal = None
    if known is None:
        atlas.need_vectors(every=True)
        if atlas.manifest.holes:
            raise PickError(atlas.manifest.holes)
        meter = Meter(atlas, seed=seed, machine=machine, without_sinks=without_sinks)
        journal = open_journal(meter, again) if keep else None
        known = _made(meter, progress, journal, engine)
    scores = _with(known, atlas, extras, seed)
    if not (keep and _kept(atlas, scores, without_sinks)):
        _not_kept.setdefault(atlas, {})[without_sinks] = scores
    if journal is not None:
        journal.sweep()
    return scores


def _as_asked(options: Mapping[str, Any], seed: int, machine: Machine, atlas: StoredAtlas) -> bool:
    """Tell whether scores have this seed, and at least so many rows of each input.

    Where vectors were not kept, the rows are those of the capture: no others can be measured.
    """
    rows = options.get("rows")
    enough = rows is None or (machine.rows is not None and machine.rows <= rows)
    return options.get("seed") == seed and (enough or atlas.manifest.kept_inputs is not None)


def known_scores(atlas: StoredAtlas, without_sinks: bool = False) -> Scores | None:
    """Get the scores in the folder of an atlas, or those measured and not kept; None if neither."""
    kept = read_scores(atlas.path, atlas.manifest, without_sinks)
    return kept or _not_kept.get(atlas, {}).get(without_sinks)


def _kept(atlas: StoredAtlas, scores: Scores, without_sinks: bool) -> bool:
    """Write scores into the folder; returns whether it could be done, and warns if not."""
    try:
        write_scores(atlas.path, atlas.manifest, scores, without_sinks)
    except StoreError as problem:
        _log.warning("the scores of %s are not kept: %s", atlas.path, problem)
        return False
    return True


def measure_some(
    atlas: StoredAtlas, inputs: set[int], seed: int = 0, without_sinks: bool = False
) -> Scores:
    """Measure some inputs of an atlas; the scores are not kept."""
    return _made(Meter(atlas, seed=seed, only=inputs, without_sinks=without_sinks), False)


def _made(
    meter: Meter, progress: bool, journal: Journal | None = None, engine: Engine = _HERE
) -> Scores:
    atlas, seed = meter.atlas, meter.seed
    count = atlas.manifest.inputs if meter.only is None else len(meter.only)
    with bar("measuring", count * len(meter.layers), progress) as draw:
        layers = measure_shards(meter, engine, draw, journal)
    rows = all_score_rows(atlas, layers)
    kinds = [row for layer in layers for row in kind_rows(atlas, layer)]
    tokens = atlas.tokens()
    if meter.only is not None:
        tokens = tokens[tokens["input"].isin(meter.only)]
    rows_of = drawn_rows(tokens, meter.machine.rows)
    used = {
        measure.name: told(measure, rows_of["rows"])
        for layer in meter.layers
        for measure in layer.measures
    }
    if meter.without_sinks:  # orders and projections know nothing of weights
        used = {
            name: words | {"formula": words["formula"] + _NO_SINKS} for name, words in used.items()
        }
    else:
        ordered, order_words = order_rows(atlas, seed)
        alike, alike_words = alike_rows(atlas)
        rows, used = rows + ordered + alike, used | order_words | alike_words
    options = {"seed": seed, "inputs": count, **rows_of}
    return Scores(pd.DataFrame(rows), pd.DataFrame(kinds), used, options)


def drawn_rows(tokens: pd.DataFrame, rows: int | None = MOST_ROWS) -> dict[str, int | None]:
    """Count the inputs of which only `rows` are measured; returns the options that say so."""
    longest = tokens.groupby(["input", "stream"]).size().groupby("input").max()
    longer = 0 if rows is None else int((longest > rows).sum())
    return {"rows": rows if longer else None, "longer inputs": longer}


def told(measure: Measure, rows: int | None = None) -> dict[str, str]:
    """Describe a measure in words: title, formula, source, chance and range.

    `rows` is how many at most are drawn of a longer input; None where all are measured.
    """
    drawn = "" if rows is None else f"; at most {rows:,} rows drawn of each longer input"
    return {
        "title": measure.title,
        "formula": f"{measure.formula}{drawn}",
        "source": measure.source,
        "chance": CHANCES[measure.chance],
        "range": range_words(measure.bounds),
    }


def all_score_rows(atlas: StoredAtlas, layers: Sequence[LayerScores]) -> list[dict[str, Any]]:
    """Make rows for the table of scores of all layers, whose intervals the cores share."""
    with matrix_threads(1):
        return [row for rows in each(partial(score_rows, atlas), layers) for row in rows]


def score_rows(atlas: StoredAtlas, scores: LayerScores) -> list[dict[str, Any]]:
    """Make rows for the table of scores: a row a measure and head that has an answer."""
    names, measures, mean = _head_names(atlas, scores), scores.layer.measures, scores.mean
    bounds = [measure.bounds for measure in measures]
    low, high = mean.interval(np.repeat(bounds, len(names), axis=0))
    columns = np.stack([mean.value, low, high, mean.counts, scores.chance.value])
    columns = columns.reshape(len(columns), len(measures), len(names))
    return [
        _row(name, measure.name, columns[:, place, head].tolist())
        for place, measure in enumerate(measures)
        for head, name in enumerate(names)
        if mean.counts[place * len(names) + head]
    ]


def _head_names(atlas: StoredAtlas, scores: LayerScores) -> list[str]:
    tower, layer = scores.layer.tower, scores.layer.layer
    return [head_name(atlas, tower, layer, head) for head in range(layer.heads)]


def _row(head: str, measure: str, figures: Sequence[float]) -> dict[str, Any]:
    value, low, high, n, chance = figures
    return {
        "head": head, "measure": measure, "value": float(value), "low": float(low),
        "high": float(high), "n": int(n), "chance": float(chance),
    }  # fmt: skip


def kind_rows(atlas: StoredAtlas, scores: LayerScores) -> list[dict[str, Any]]:
    """Make rows for the table of kinds: a row a head that has one."""
    rows = []
    for name, head_kind in zip(_head_names(atlas, scores), scores.tally.kinds(), strict=True):
        if head_kind is None:
            continue
        kind = dict(vars(head_kind.kind))
        evidence = kind.pop("evidence")
        row = {"head": name, "kind": kind.pop("name")}
        row |= kind | {"agree": head_kind.agree, "n": head_kind.inputs}
        row["telling"] = list(head_kind.telling)
        row |= {f"evidence {shape}": value for shape, value in evidence.items()}
        rows.append(row | {f"inputs {label}": head_kind.counts[label] for label in KINDS})
    return rows


def head_name(atlas: StoredAtlas, tower: Tower, layer: Layer, head: int) -> str:
    """Get the name of a head, with its tower where an atlas has several."""
    return str(Head(tower.name if len(atlas.towers) > 1 else "", layer.layer, head))


def _with(scores: Scores, atlas: StoredAtlas, extras: Sequence[Extra | Ready], seed: int) -> Scores:
    """Add extras to scores; they replace scores of the same name."""
    if not extras:
        return scores
    names = [str(name) for name in atlas.heads()["head"]]
    given = {extra.name for extra in extras}
    kept = scores.table[~scores.table["measure"].isin(given)]
    rows = [row for extra in extras for row in _extra_rows(names, extra, seed)]
    words: Mapping[str, dict[str, str]] = {
        extra.name: {
            "title": extra.title, "formula": extra.formula, "source": extra.source,
            "chance": extra.chance_means, "range": range_words(extra.bounds),
        }
        for extra in extras
    }  # fmt: skip
    table = pd.concat([kept, pd.DataFrame(rows)], ignore_index=True)
    return Scores(table, scores.kinds, {**scores.measures, **words}, scores.options)


def _extra_rows(names: list[str], extra: Extra | Ready, seed: int) -> list[dict[str, Any]]:
    columns = extra.figures(seed)
    return [
        _row(name, extra.name, [column[place] for column in columns])
        for place, name in enumerate(names)
        if columns[3][place] and np.isfinite(columns[0][place])
    ]


def values_by_input(atlas: StoredAtlas, name: str, seed: int) -> tuple[Floats, Floats, Measure]:
    """Measure one score of an atlas; returns (inputs, heads), its chance (heads,), the measure."""
    measure = MEASURES[name]
    meter = Meter(atlas, {name: measure}, seed)
    partials = [meter.shard(number) for number in range(len(atlas.manifest.shards))]
    values = [
        np.concatenate([partial.of(layer)[1][:, 0] for partial in partials])
        for layer in meter.layers
    ]
    chances = [scores.chance.value for scores in join(meter.layers, partials, seed)]
    return np.concatenate(values, 1), np.concatenate(chances), measure
