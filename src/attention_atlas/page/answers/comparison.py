"""What does the page show of several models on the same inputs?"""

from collections.abc import Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.measure.alike import LONGEST, scaled
from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.compare import ModelComparison, compare, shared_inputs
from attention_atlas.measure.kinds import KINDS
from attention_atlas.measure.over_time import (
    AWAY,
    AWAY_TITLE,
    heads_of,
    shared_measures,
    values_of,
)
from attention_atlas.measure.run import known_scores
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.token_text import visible
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.heads import SMALL
from attention_atlas.page.answers.session import Session
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import compare as wire
from attention_atlas.page.wire.constants import NO_KIND
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.scores import Scores

MOST = 32  # models at once
CELLS = 32  # rows and columns of a drawn head, at most
_LABEL = 60  # characters of an input's label
_comparing = Lock()  # two pages may ask for the same comparison at once


def comparison(session: Session, which: str, without_sinks: bool = False) -> wire.ComparedModels:
    """Compare models for a page; refuse what would take too long."""
    atlases, ways = _chosen(session, which)
    shared = shared_inputs(*atlases)
    for atlas in atlases:
        _refuse_large(atlas, len(shared), without_sinks)
    return compared(atlases, ways, keep=False, without_sinks=without_sinks)


def compared(
    atlases: Sequence[StoredAtlas], ways: Sequence[str], keep: bool = True,
    without_sinks: bool = False,
) -> wire.ComparedModels:  # fmt: skip
    """Compare atlases, however long it takes; `keep` says whether new scores are written."""
    with _comparing:
        result = compare(*atlases, keep=keep, without_sinks=without_sinks)
    models = [
        _compared(result, number, [str(name) for name in atlas.heads()["head"]], way)
        for number, (atlas, way) in enumerate(zip(atlases, ways, strict=True))
    ]
    texts = atlases[0].inputs()["text"].tolist()
    labels = [_label(str(texts[numbers[0]])) for numbers in result.inputs]
    return wire.ComparedModels(
        models, [_counterparts(result, number) for number in range(1, len(models))], KINDS,
        np.array(result.inputs, np.uint32), labels, scaled(result.divergence).astype(np.float32),
        result.note, *_lines(result),
    )  # fmt: skip


def _lines(
    result: ModelComparison,
) -> tuple[Sequence[str], Sequence[str], Sequence[str], npt.NDArray[np.float32], str]:
    """Return the lines per head: heads, scores, their titles, values, or why there are none."""
    try:
        heads = heads_of(result.scores, result.names)
    except InputError as problem:
        return (), (), (), np.zeros((0, 0, 0), np.float32), str(problem)
    known = shared_measures(result.scores)
    away = result.away()
    none = np.full(len(result.names), np.nan)
    values = [np.array([away.get(head, none) for head in heads]).T]
    values += [values_of(result.scores, heads, measure) for measure in known]
    titles = [AWAY_TITLE, *(result.scores[0].measures[measure]["title"] for measure in known)]
    return heads, (AWAY, *known), titles, np.array(values, np.float32), ""


def reaction(session: Session, which: str, place: int) -> wire.Reaction:
    """Return what every head of the compared models did with one shared input."""
    atlases, _ = _chosen(session, which)
    shared = shared_inputs(*atlases)
    if place >= len(shared):
        raise PickError(f"{place} is no shared input; there are 0 to {len(shared) - 1}")
    numbers = shared[place]
    return wire.Reaction(
        [_reacted(atlas, number) for atlas, number in zip(atlases, numbers, strict=True)]
    )


def pooled(weights: Floats, size: int) -> Floats:
    """Pool weights (H, N, M) to (H, size, size): the largest weight of each part."""
    for axis in (1, 2):
        edges = np.arange(size) * weights.shape[axis] // size
        weights = np.maximum.reduceat(weights, edges, axis=axis)
    return weights


def _chosen(session: Session, which: str) -> tuple[list[StoredAtlas], list[str]]:
    """Return the atlases asked for, this one first, and the addresses of their pages."""
    words, others = which.split(","), session.others
    known = {str(place) for place in range(len(others))}
    if not set(words) <= known or len(set(words)) < len(words) or len(words) >= MOST:
        numbers = f"0 to {len(others) - 1}" if others else "none"
        raise PickError(
            f"{which[:40]!r} names no other atlases of this server; there are {numbers}; "
            f"give up to {MOST - 1}, as in compare/0"
        )
    chosen = [others[int(word)] for word in words]
    atlases = [
        _bare(subject) for subject in (session.subject, *(other.subject for other in chosen))
    ]
    return atlases, ["", *(other.info.address for other in chosen)]


def _bare(subject: Subject) -> StoredAtlas:
    """Return the atlas without the texts that were added to an open page."""
    if not isinstance(subject, StoredAtlas):
        raise PickError("plain attention is not compared; capture the models: aa.capture(…)")
    return subject.base if isinstance(subject, Grown) else subject


def _refuse_large(atlas: StoredAtlas, shared: int, without_sinks: bool) -> None:
    """Refuse an atlas that would take too long to measure while a person waits."""
    if shared == atlas.manifest.inputs and known_scores(atlas, without_sinks) is not None:
        return
    heads = sum(layer.heads for tower in atlas.towers for layer in tower.layers)
    if heads * shared > SMALL:
        option = " --without-sinks" if without_sinks else ""
        raise PickError(
            f"{atlas.path.name} is not measured on these {shared} inputs; run: attention-atlas "
            f"measure {atlas.path.name}{option}, on atlases of the same texts"
        )


def _compared(result: ModelComparison, number: int, heads: list[str], way: str) -> wire.Compared:
    name, scores = result.names[number], result.scores[number]
    kinds = scores.kinds.set_index("head")["kind"].reindex(heads)
    known = [KINDS.index(kind) if isinstance(kind, str) else NO_KIND for kind in kinds]
    return wire.Compared(
        name, way, heads, np.array(known, np.uint8), _values(scores, "importance", heads),
        _values(scores, "importance-chosen", heads), _column(result.statistics, name),
        _column(result.statistics_chosen, name),
        {kind: int(count) for kind, count in _column(result.kinds, name).items()},
        result.heads[number],
    )  # fmt: skip


def _values(scores: Scores, measure: str, heads: list[str]) -> Floats:
    rows = scores.table[scores.table["measure"] == measure].set_index("head")["value"]
    return rows.reindex(heads).to_numpy(np.float32)


def _column(frame: pd.DataFrame, name: str) -> dict[str, float]:
    return {str(row): float(value) for row, value in frame[name].items()}


def _counterparts(result: ModelComparison, model: int) -> wire.Counterparts:
    away = result.between(0, model)
    same = np.diagonal(away) if result.heads[0] == result.heads[model] else None
    return wire.Counterparts(
        away.argmin(1).astype(np.uint16), away.min(1).astype(np.float32),
        None if same is None else same.astype(np.float32),
    )  # fmt: skip


def _reacted(atlas: StoredAtlas, number: int) -> wire.Reacted:
    tokens = len(atlas.tokens(number, atlas.towers[0].layers[0].queries))
    if tokens > LONGEST:
        raise InputError(
            f"input {number} has {tokens} tokens; reactions are drawn of up to {LONGEST}"
        )
    layers = [
        atlas.layer_weights(number, layer.layer, tower.name)
        for tower in atlas.towers
        for layer in tower.layers
    ]
    cells = np.concatenate([pooled(weights, min(CELLS, tokens)) for weights in layers])
    return wire.Reacted(
        tokens, np.concatenate([weights.max((1, 2)) for weights in layers]).astype(np.float32),
        np.rint(255 * np.clip(cells, 0, 1)).astype(np.uint8),
    )  # fmt: skip


def _label(text: str) -> str:
    plain = " ".join(visible(text).replace("·", " ").split())
    return plain if len(plain) <= _LABEL else plain[: _LABEL - 1].rstrip() + "…"
