"""How does each head change over checkpoints of one model, or with an adapter? Lines per head.

Scores of the inputs that all atlases share, one value a model and head; or `away`, how far a head
is from itself in the first model, in bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from attention_atlas.measure.arrays import Floats
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.store.scores import Scores

AWAY = "away"
AWAY_TITLE = "distance from the first, in bits"
_WIDE, _HIGH, _EDGE = 640, 300, 46


@dataclass(frozen=True)
class HeadLines:
    """One score of every head over some models, in the order given."""

    measure: str
    title: str
    models: tuple[str, ...]
    heads: tuple[str, ...]
    values: Floats  # (models, heads), NaN: no answer

    def table(self) -> pd.DataFrame:
        """Return a row a head and a column a model."""
        return pd.DataFrame(self.values.T, index=list(self.heads), columns=list(self.models))

    def most_changed(self, count: int = 10) -> list[tuple[str, float]]:
        """List the heads whose last value is farthest from their first, with the change."""
        change = self.values[-1] - self.values[0]
        order = np.argsort(-np.abs(np.nan_to_num(change)), kind="stable")[:count]
        return [(self.heads[place], float(change[place])) for place in order]

    def _repr_svg_(self) -> str:
        """Draw a line a head, for notebooks; those that change most have their names."""
        known = self.values[np.isfinite(self.values)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        wide = max(high - low, 1e-12)
        steps = np.linspace(_EDGE, _WIDE - 70, len(self.models))
        down = _HIGH - 40 - (self.values - low) / wide * (_HIGH - 80)
        named = {head for head, _ in self.most_changed(5)}
        parts = [f'<text x="{_EDGE}" y="18" font-weight="600">{escape(self.title)}</text>']
        for place, head in enumerate(self.heads):
            points = [
                f"{x:.1f},{y:.1f}" for x, y in zip(steps, down[:, place], strict=True)
                if np.isfinite(y)
            ]  # fmt: skip
            look = 'stroke="#1b5e96" stroke-width="2"' if head in named else 'stroke="#9a9fa8"'
            parts.append(f'<polyline points="{" ".join(points)}" fill="none" {look}/>')
            if head in named and np.isfinite(down[-1, place]):
                y = down[-1, place] + 4
                parts.append(f'<text x="{steps[-1] + 6:.1f}" y="{y:.1f}">{escape(head)}</text>')
        for x, model in zip(steps, self.models, strict=True):
            short = escape(model if len(model) < 16 else f"{model[:7]}…{model[-7:]}")
            parts.append(f'<text x="{x:.1f}" y="{_HIGH - 14}" text-anchor="middle">{short}</text>')
        for value, y in ((high, 40), (low, _HIGH - 40)):
            parts.append(f'<text x="4" y="{y + 4}">{value:.3g}</text>')
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{_HIGH}" '
            f'font-family="sans-serif" font-size="11" fill="#6b7078">{"".join(parts)}</svg>'
        )


def heads_of(scores: Sequence[Scores], names: Sequence[str]) -> tuple[str, ...]:
    """Return the heads of all models; refuse models whose heads differ."""
    sets = [tuple(dict.fromkeys(each.table["head"])) for each in scores]
    for name, heads in zip(names, sets, strict=True):
        if set(heads) != set(sets[0]):
            raise InputError(
                f"{names[0]} has {len(sets[0])} heads and {name} has others ({len(heads)}); lines "
                "per head need checkpoints of one model, or a model with and without an adapter"
            )
    return sets[0]


def shared_measures(scores: Sequence[Scores]) -> list[str]:
    """List the scores that all models have."""
    return [name for name in scores[0].measures if all(name in each.measures for each in scores)]


def values_of(scores: Sequence[Scores], heads: Sequence[str], measure: str) -> Floats:
    """Return one score of every model and head, (models, heads)."""
    rows = []
    for each in scores:
        table = each.table[each.table["measure"] == measure].set_index("head")["value"]
        rows.append(table.reindex(list(heads)).to_numpy(dtype=np.float64))
    return np.array(rows)


def head_lines(
    scores: Sequence[Scores], names: Sequence[str], away: dict[str, Floats], measure: str
) -> HeadLines:
    """Return the lines of a score, or of `away` (head → bits in each model)."""
    heads = heads_of(scores, names)
    if measure == AWAY:
        kept = tuple(head for head in heads if head in away)
        values = np.array([away[head] for head in kept]).T
        return HeadLines(AWAY, AWAY_TITLE, tuple(names), kept, values)
    known = shared_measures(scores)
    if measure not in known:
        raise PickError(f"there is no score {measure!r}; there is {', '.join([AWAY, *known])}")
    title = scores[0].measures[measure]["title"]
    return HeadLines(measure, title, tuple(names), heads, values_of(scores, heads, measure))
