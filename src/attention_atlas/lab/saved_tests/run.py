"""Does a saved test hold, fail, or stay undecided?

holds      the 95 % interval of the mean lies where the test expects it, and if the test claims a
           change, the edits change more than each control (the interval of the difference)
fails      the interval lies outside, or a control changes as much or more
undecided  the interval reaches across a border, or there are fewer than three cases
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from attention_atlas.lab.saved_tests.definition import KIND, SavedTest, read_test
from attention_atlas.lab.saved_tests.measure import (
    HEADS,
    NOT_MADE,
    POSITIONS,
    SAME,
    Measured,
    measure_case,
    measure_label,
)
from attention_atlas.measure.boot import FEWEST, Mean, draws
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.progress import bar

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


@dataclass(frozen=True)
class Interval:
    """A mean over cases with its 95 % interval; NaN where there is none."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class ControlOutcome:
    """What a control changes, and how much more the edits of the test change."""

    name: str
    change: Interval
    lead: Interval  # of the test over the control, in the direction that is claimed
    note: str = ""  # why it was not made

    @property
    def verdict(self) -> str:
        """Tell whether the test changes more than the control."""
        if self.note or not np.isfinite(self.lead.low):
            return UNDECIDED
        return HOLDS if self.lead.low > 0 else FAILS if self.lead.high <= 0 else UNDECIDED


@dataclass(frozen=True)
class Outcome:
    """The result of a saved test."""

    test: SavedTest
    model: str
    verdict: str
    mean: Interval  # of what the edits change, or of the lead of a kind
    plain: float
    edited: float
    controls: tuple[ControlOutcome, ...]
    table: pd.DataFrame  # one row a case

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON, without the test itself."""
        return {
            "name": self.test.name, "question": self.test.question, "model": self.model,
            "verdict": self.verdict, "metric": self.test.metric, "expect": dict(self.test.expect),
            "cases": len(self.table), "plain": self.plain, "edited": self.edited,
            "change": _plain(self.mean),
            "controls": [
                {"name": each.name, "change": _plain(each.change), "lead": _plain(each.lead),
                 "verdict": each.verdict, "note": each.note}
                for each in self.controls
            ],
        }  # fmt: skip


def _plain(interval: Interval) -> dict[str, float | None]:
    return {name: value if np.isfinite(value) else None for name, value in vars(interval).items()}


def run_test(
    source: Any, model: Any, tokenizer: Any = None, *, seed: int = 0, **loading: Any
) -> Outcome:
    """Run a saved test on a model; return its outcome.

    source  a SavedTest, its JSON, the path of a file, or the name of a shipped test
    seed    of the interval; the controls have the seed of the test
    """
    test = read_test(source)
    loaded = model if isinstance(model, Loaded) else load(model, tokenizer, **loading)
    measure: Callable[[Loaded, SavedTest, int], Measured] = (
        measure_label if test.metric == KIND else measure_case
    )
    measured = []
    with EXCLUSIVE, bar("cases", len(test.cases), show=False) as tick:
        for number in range(len(test.cases)):
            tick(number)
            measured.append(measure(loaded, test, number))
        tick(len(test.cases))
    return _outcome(test, loaded.name, measured, seed)


def _outcome(test: SavedTest, model: str, measured: list[Measured], seed: int) -> Outcome:
    effects = np.array([each.effect for each in measured])
    controls = []
    for name in (HEADS, POSITIONS, SAME):
        changes = np.array([each.controls[name] for each in measured])
        lead = (test.sign or 1) * (effects - changes)
        none_asked = {HEADS: test.controls.heads, POSITIONS: test.controls.positions}.get(name) == 0
        reason = "the test asks for none" if none_asked else NOT_MADE[name]
        note = "" if np.isfinite(changes).any() else reason
        controls.append(ControlOutcome(name, interval(changes, seed), interval(lead, seed), note))
    mean = interval(effects, seed)
    table = pd.DataFrame(
        {
            "input": [case.input for case in test.cases],
            "plain": [each.plain for each in measured],
            "edited": [each.edited for each in measured],
            "change": effects,
            **{name: [each.controls[name] for each in measured] for name in NOT_MADE},
        }
    )
    return Outcome(
        test, model, verdict_of(test, mean, controls), mean, float(table["plain"].mean()),
        float(table["edited"].mean()), tuple(controls), table,
    )  # fmt: skip


def interval(values: Any, seed: int) -> Interval:
    """Return the mean of some values with its bootstrap interval; NaNs are left out."""
    mean = Mean(1)
    mean.add(np.asarray(values, np.float64)[:, None], draws(seed, tuple(range(len(values)))))
    if mean.counts[0] < FEWEST:
        return Interval(float(mean.value[0]), float("nan"), float("nan"))
    low, high = mean.interval()
    return Interval(float(mean.value[0]), float(low[0]), float(high[0]))


def verdict_of(test: SavedTest, mean: Interval, controls: list[ControlOutcome]) -> str:
    """Return what the interval and, where a change is claimed, the controls say."""
    least, most = test.range
    if not np.isfinite(mean.low):
        return UNDECIDED
    if mean.high < least or mean.low > most:
        return FAILS
    against = [each.verdict for each in controls if not each.note] if test.sign else []
    if FAILS in against:
        return FAILS
    inside = least <= mean.low and mean.high <= most
    return HOLDS if inside and UNDECIDED not in against else UNDECIDED
