"""Which heads are worth a look, and why?

Rules on the scores, each with its sentence; a head's rank is how unusual it is among the heads of
its model: the largest of its distances from the median over all scores, in spreads (median absolute
deviations), plus one for each rule it meets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from attention_atlas.store.scores import Scores

NULL, ONLY_SELF, EVEN, APART, TWIN = 0.8, 0.8, 0.98, 2.0, 0.01
ODD_ENOUGH = 3.5  # spreads from the median (Iglewicz & Hoaglin)


@dataclass(frozen=True)
class Anomaly:
    """A head that meets a rule."""

    head: str
    what: str  # a word for filters
    sentence: str


# Word → its score, the condition on that score, and the sentence that takes its value.
RULES: dict[str, tuple[str, Callable[[float], bool], str]] = {
    "null": ("first-token", lambda x: x >= NULL, "rests on the first token ({:.0%} of attention)"),
    "self": ("self", lambda x: x >= ONLY_SELF, "looks at nothing but the token itself ({:.0%})"),
    "dead": ("entropy", lambda x: x >= EVEN, "is even over all keys (entropy {:.3f}): dead?"),
    "norms": ("norm-gap", lambda x: abs(x) >= APART, "has queries 2^{:.1f} times its keys' length"),
}  # fmt: skip


def anomalies(scores: Scores, twins: dict[str, tuple[str, float]] | None = None) -> list[Anomaly]:
    """Find the heads that meet a rule; `twins` maps a head to its nearest one and the distance."""
    table = scores.table.pivot(index="head", columns="measure", values="value")
    met = [
        Anomaly(str(head), what, say.format(value))
        for what, (measure, holds, say) in RULES.items()
        if measure in table
        for head, value in table[measure].dropna().items()
        if holds(float(value))
    ]
    for head, (other, away) in (twins or {}).items():
        if away <= TWIN:
            met.append(
                Anomaly(head, "duplicate", f"does what {other} does (divergence {away:.4f})")
            )
    return met


def worth_a_look(scores: Scores, found: list[Anomaly]) -> pd.DataFrame:
    """Rank heads, most unusual first; returns a row a head: odd, the oddest score, its rules."""
    table = scores.table.pivot(index="head", columns="measure", values="value")
    middle = table.median()
    spread = (table - middle).abs().median() * 1.4826
    steps = ((table - middle) / spread.where(spread > 1e-6)).replace([np.inf, -np.inf], np.nan)
    away = steps.abs()
    rules: dict[str, list[str]] = {}
    for anomaly in found:
        rules.setdefault(anomaly.head, []).append(anomaly.what)
    rows: list[dict[str, Any]] = []
    for head in table.index:
        distances = away.loc[head].dropna()
        odd = float(distances.max()) if len(distances) else 0.0
        rows.append({
            "head": head, "odd": odd + ODD_ENOUGH * len(rules.get(str(head), [])),
            "by": str(distances.idxmax()) if len(distances) else "",
            "found": rules.get(str(head), []),
        })  # fmt: skip
    return pd.DataFrame(rows).sort_values("odd", ascending=False, ignore_index=True)
