"""What is known of one head?"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from attention_atlas.measure.alike import HeadsAlike
from attention_atlas.measure.anomalies import anomalies
from attention_atlas.measure.arrays import Floats
from attention_atlas.names.errors import PickError
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.scores import Scores

MOST = 6  # relations on a card


@dataclass(frozen=True)
class Card:
    """All that is known of one head."""

    head: str
    kind: dict[str, Any]  # the head's row of kinds.parquet
    scores: list[dict[str, Any]]  # with title, formula, source, chance and rank among the heads
    anomalies: list[str]
    nearest: list[tuple[str, float]]
    telling: list[int]  # inputs that show its kind best
    relations: list[dict[str, Any]]  # those it follows better than a fixed offset does


def card(atlas: StoredAtlas, scores: Scores, head: str, similar: HeadsAlike | None = None) -> Card:
    """Gather all that is known of one head; refuses a head that was not measured."""
    rows = scores.table[scores.table["head"] == head]
    kinds = scores.kinds[scores.kinds["head"] == head]
    if not len(rows):
        raise PickError(f"no head {head} was measured in {atlas.path.name}")
    kind: dict[str, Any] = {str(k): v for k, v in kinds.iloc[0].items()} if len(kinds) else {}
    telling = [int(number) for number in kind.pop("telling", [])]
    twins = (
        {} if similar is None or head not in similar.heads else {head: similar.nearest(head, 1)[0]}
    )
    own = replace(scores, table=rows)  # the others are not looked at: a page asks for many cards
    sentences = [anomaly.sentence for anomaly in anomalies(own, twins)]
    values = _by_measure(scores)
    known = [_score(scores, row, values[row["measure"]]) for row in rows.to_dict("records")]
    return Card(
        head, kind, known, sentences,
        similar.nearest(head) if twins and similar is not None else [], telling,
        _relations(atlas, head),
    )  # fmt: skip


def _relations(atlas: StoredAtlas, head: str) -> list[dict[str, Any]]:
    table = atlas.relations()
    if table is None:
        return []
    followed = table[(table["head"] == head) & (table["above"] > 0)]
    best = followed.sort_values(["above", "words"], ascending=False).head(MOST)
    return [{str(name): value for name, value in row.items()} for row in best.to_dict("records")]


def _by_measure(scores: Scores) -> dict[str, Floats]:
    """Return the values of all heads, by measure."""
    codes, names = pd.factorize(scores.table["measure"])
    values = scores.table["value"].to_numpy(np.float64)
    return {str(name): values[codes == code] for code, name in enumerate(names)}


def _score(scores: Scores, row: dict[Any, Any], others: Floats) -> dict[str, Any]:
    words = scores.measures[row["measure"]]
    return {
        **row, "title": words["title"], "formula": words["formula"], "source": words["source"],
        "chance_means": words["chance"], "rank": int((others > row["value"]).sum()) + 1,
        "of": len(others),
    }  # fmt: skip
