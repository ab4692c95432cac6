"""What does the page show of heads? Their scores, their cards and which heads are similar."""

import os
from collections.abc import Iterable
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from attention_atlas.measure.alike import HeadsAlike, alike
from attention_atlas.measure.anomalies import anomalies, worth_a_look
from attention_atlas.measure.card import card
from attention_atlas.measure.kinds import KINDS
from attention_atlas.measure.run import known_scores, measure_atlas
from attention_atlas.measure.shapes import NAMES
from attention_atlas.names.errors import AtlasError, PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import heads as wire
from attention_atlas.page.wire.constants import NO_KIND
from attention_atlas.store.map_scores import map_scores
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.scores import Scores, read_scores

SMALL = 10_000  # heads × inputs that are measured while a person waits, in seconds
_measuring = Lock()  # a page asks for scores and similar heads at the same time
_alike: WeakKeyDictionary[StoredAtlas, HeadsAlike] = WeakKeyDictionary()


def can_measure(atlas: StoredAtlas, without_sinks: bool = False) -> bool:
    """Tell whether heads can be shown: scores are stored, or can be measured in seconds."""
    if known_scores(atlas, without_sinks) is not None:
        return True
    heads = sum(layer.heads for tower in atlas.towers for layer in tower.layers)
    if heads * atlas.manifest.inputs > SMALL:
        return False
    return int(atlas.tokens().groupby("input").size().max()) > 1


def measured(subject: Subject, without_sinks: bool = False) -> tuple[StoredAtlas, Scores]:
    """Return the atlas and its scores; measure a small atlas if needed, without writing."""
    if not isinstance(subject, StoredAtlas):
        raise PickError("plain attention is not measured; capture the model: aa.capture(…)")
    with _measuring:
        scores = known_scores(subject, without_sinks)
        if scores is not None:
            return subject, scores
        if not can_measure(subject, without_sinks):
            how, option = (" without sinks", " --without-sinks") if without_sinks else ("", "")
            raise PickError(
                f"{subject.path.name} is not measured{how} yet; run: attention-atlas measure "
                f"{subject.path.name}{option}"
            )
        return subject, measure_atlas(
            subject, progress=False, keep=False, without_sinks=without_sinks
        )


def head_scores(subject: Subject, without_sinks: bool = False) -> wire.HeadScores:
    """Return the kind and every score of every head.

    without_sinks  of weights without the sinks of each input
    """
    atlas, scores = measured(subject, without_sinks)
    heads = [str(name) for name in atlas.heads()["head"]]
    of_maps, map_words = map_scores(atlas.path)
    measures = {**scores.measures, **map_words}
    names = list(measures)
    table = pd.concat([scores.table, of_maps]) if len(of_maps) else scores.table
    tables = {
        column: table.pivot(index="measure", columns="head", values=column)
        .reindex(index=names, columns=heads)
        .to_numpy(np.float32)
        for column in ("value", "low", "high", "chance", "n")
    }
    kinds = scores.kinds.set_index("head").reindex(heads)
    unusual = anomalies(scores)
    odd = worth_a_look(scores, unusual).set_index("head").reindex(heads)
    known = [KINDS.index(kind) if isinstance(kind, str) else NO_KIND for kind in kinds["kind"]]
    sentences = {anomaly.head: anomaly.sentence for anomaly in unusual}
    return wire.HeadScores(
        heads, KINDS, np.array(known, np.uint8), kinds["margin"].to_numpy(np.float32),
        kinds["agree"].to_numpy(np.float32),
        [detail if isinstance(detail, str) else "" for detail in kinds["detail"]],
        [wire.MeasureInfo(name, **measures[name]) for name in names],
        tables["value"], tables["low"], tables["high"], tables["chance"],
        np.nan_to_num(tables["n"]).astype(np.uint32), odd["odd"].to_numpy(np.float32),
        [sentences.get(head, "") for head in heads], _not_kept(atlas, without_sinks),
    )  # fmt: skip


def _not_kept(atlas: StoredAtlas, without_sinks: bool) -> str:
    """Say that scores are in memory only; empty if they are in the folder."""
    if read_scores(atlas.path, atlas.manifest, without_sinks) is not None:
        return ""
    now = "These scores were measured now and are not kept"
    if not os.access(atlas.path, os.W_OK):
        return f"{now}: {atlas.path.name} cannot be written to."
    option = " --without-sinks" if without_sinks else ""
    return f"{now}; to keep them, run: attention-atlas measure {atlas.path.name}{option}"


def alike_heads(subject: Subject) -> wire.AlikeHeads:
    """Return the map of heads by what they do."""
    atlas, _ = measured(subject)
    similar = _similar(atlas)
    return wire.AlikeHeads(
        similar.heads, similar.places.astype(np.float32), similar.cluster.astype(np.uint16)
    )  # fmt: skip


def _similar(atlas: StoredAtlas) -> HeadsAlike:
    if atlas not in _alike:
        _alike[atlas] = alike(atlas)
    return _alike[atlas]


def head_card(subject: Subject, name: str, without_sinks: bool = False) -> wire.HeadCard:
    """Return what is known of one head besides its scores."""
    atlas, scores = measured(subject, without_sinks)
    try:
        similar = _similar(atlas)
    except AtlasError:  # the card can do without similar heads
        similar = None
    head = card(atlas, scores, str(Head.parse(name)), similar)
    kind = head.kind
    without = kind.get("without_sink")
    return wire.HeadCard(
        head.head, {shape: float(kind.get(f"evidence {shape}", 0)) for shape in NAMES},
        {name: int(kind.get(f"inputs {name}", 0)) for name in KINDS}, float(kind.get("sink", 0)),
        str(kind.get("with_sink", "")), without if isinstance(without, str) else None,
        head.anomalies, [wire.NearHead(name, away) for name, away in head.nearest], head.telling,
        [
            wire.Followed(
                row["relation"], row["way"], row["right"], row["baseline"], int(row["words"])
            )
            for row in head.relations
        ],
    )  # fmt: skip


def saved_scores(saving: Saving, word: str, without_sinks: bool = False) -> Iterable[str]:
    """Return the path of a packet about all heads, if the atlas is measured."""
    return [word] if _is_measured(saving.subject, without_sinks) else []


def saved_cards(saving: Saving, word: str, without_sinks: bool = False) -> Iterable[str]:
    """Return the paths of all cards, if the atlas is measured."""
    measured = _is_measured(saving.subject, without_sinks)
    return [f"{word}/{head}" for _, _, head in saving.heads()] if measured else []


def _is_measured(subject: Subject, without_sinks: bool) -> bool:
    return isinstance(subject, StoredAtlas) and known_scores(subject, without_sinks) is not None
