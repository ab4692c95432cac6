"""What is a saved test? JSON that says which edits change which answers by how much.

    {"attention_atlas_test": 1,
     "name": "bias",
     "question": "Does the choice of a pronoun hang on looking at the occupation?",
     "cases": [{"input": "The nurse said that ___ was tired.", "answer": "she", "wrong": "he",
                "words": {"noun": "nurse"}, "same": "Mary, the nurse, said that ___ was tired."}],
     "edits": [{"edit": "mask", "heads": "all", "tokens": "{noun}"}],
     "metric": "difference",
     "expect": {"at most": -0.1},
     "controls": {"heads": 4, "positions": 4, "seed": 0}}

A test of a head's kind has no edits; it has `"metric": "kind"` and `"label"` with head and kind.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attention_atlas.lab.answers import METRICS
from attention_atlas.lab.saved_tests.names import SHIPPED, shipped_names
from attention_atlas.names.errors import InputError

FORMAT = 1
KIND = "kind"
_MARK = "attention_atlas_test"
_EXPECTED = ("at least", "at most", "between")


@dataclass(frozen=True)
class TestCase:
    """One input of a saved test.

    input   a text, with ___ where the answer belongs if it is not at the end
    words   names for words of the input, which edits use as positions: "{noun}"
    texts   names for other inputs, which edits use: "{clean}"
    same    an input whose answer is the same by other means, as a control
    """

    __test__ = False  # not one of pytest

    input: Any
    answer: Any = None
    wrong: Any = None
    words: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Any] = field(default_factory=dict)
    same: Any = None


@dataclass(frozen=True)
class Controls:
    """How many random heads and positions are tried in place of those of the test."""

    heads: int = 4
    positions: int = 4
    seed: int = 0


@dataclass(frozen=True)
class SavedTest:
    """A claim about a model that can be run."""

    name: str
    question: str
    cases: tuple[TestCase, ...]
    edits: tuple[Mapping[str, Any], ...]
    metric: str
    expect: Mapping[str, Any]
    controls: Controls = Controls()
    label: Mapping[str, str] | None = None  # head and kind, where a label is tested

    @property
    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest mean that the test expects."""
        if "between" in self.expect:
            low, high = self.expect["between"]
            return float(low), float(high)
        return (
            float(self.expect.get("at least", -math.inf)),
            float(self.expect.get("at most", math.inf)),
        )

    @property
    def sign(self) -> int:
        """Return 1 if a rise is claimed, −1 if a fall is, 0 if neither is."""
        low, high = self.range
        if not self.edits:
            return 0
        return 1 if low >= 0 and math.isinf(high) else -1 if high <= 0 and math.isinf(low) else 0

    def to_json(self) -> dict[str, Any]:
        """Return the test as it is written in a file."""
        raw: dict[str, Any] = {
            _MARK: FORMAT, "name": self.name, "question": self.question,
            "cases": [_set_fields(case) for case in self.cases],
            "edits": [dict(edit) for edit in self.edits], "metric": self.metric,
            "expect": dict(self.expect), "controls": vars(self.controls),
        }  # fmt: skip
        return raw if self.label is None else {**raw, "label": dict(self.label)}


def _set_fields(case: TestCase) -> dict[str, Any]:
    return {name: value for name, value in vars(case).items() if value not in (None, {})}


def read_test(source: Any) -> SavedTest:
    """Return a test given as JSON, as a path, or as the name of a shipped test."""
    if isinstance(source, SavedTest):
        return source
    if isinstance(source, Mapping):
        return _test(source, "the test")
    path = Path(source)
    if str(source) in shipped_names():
        path = SHIPPED / f"{source}.json"
    elif not path.is_file():
        raise InputError(
            f"no test is called {source}; give a JSON file or one of {', '.join(shipped_names())}"
        )
    try:
        raw = json.loads(path.read_text("utf-8"))
    except ValueError as problem:
        raise InputError(f"{path.name} is not JSON: {problem}") from problem
    return _test(raw, path.name)


def _test(raw: Any, name: str) -> SavedTest:
    if not isinstance(raw, Mapping) or _MARK not in raw:
        raise InputError(f'{name} is no saved test; it has no "{_MARK}": {FORMAT}')
    if raw[_MARK] != FORMAT:
        raise InputError(f"{name} is of format {raw[_MARK]} and this version reads {FORMAT}")
    fields = {key: value for key, value in raw.items() if key != _MARK}
    try:
        test = SavedTest(
            **{
                **fields,
                "cases": tuple(TestCase(**case) for case in fields.pop("cases")),
                "edits": tuple(fields.pop("edits", ())),
                "controls": Controls(**fields.pop("controls", {})),
            }
        )
    except (TypeError, KeyError) as problem:
        raise InputError(f"{name} is no saved test: {problem}") from problem
    _check(test, name)
    return test


def _check(test: SavedTest, name: str) -> None:
    metrics = (*METRICS, KIND)
    if test.metric not in metrics:
        raise InputError(
            f"{name}: no metric is called {test.metric!r}; give one of {', '.join(metrics)}"
        )
    if len(test.expect) != 1 or not set(test.expect) <= set(_EXPECTED):
        raise InputError(
            f"{name} expects {dict(test.expect)}; give one of {', '.join(_EXPECTED)} with its "
            "numbers"
        )
    if not test.cases:
        raise InputError(f"{name} has no cases; give inputs with answers")
    if (test.metric == KIND) != (test.label is not None):
        raise InputError(f'{name}: the metric "{KIND}" and a "label" go together')
    if test.metric != KIND and not test.edits:
        raise InputError(f"{name} has no edits, so nothing changes; give edits")
