"""Does a claim about the model hold? A saved test with its controls, run by the attached model.

A test from an agent holds texts and never names of files: a text that could be a path is refused.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from attention_atlas.lab.saved_tests.names import shipped_names
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.names.errors import InputError
from attention_atlas.page.agents.answer import Answer, cut, small
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.live.label import known_kind
from attention_atlas.page.wire.constants import LONGEST_TEXT

_BLANK = "___"
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Words = Annotated[str, Field(max_length=300)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CaseAsked(_Strict):
    """One case: a text with ___ where the answer belongs, and what the edits are about."""

    input: Text
    answer: Words | None = None
    wrong: Words | None = None
    words: dict[Words, Words] = {}
    texts: dict[Words, Text] = {}
    same: Text | None = None


class ControlsAsked(_Strict):
    """How many random heads and positions are tried instead."""

    heads: Annotated[int, Field(ge=0, le=16)] = 4
    positions: Annotated[int, Field(ge=0, le=16)] = 4
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class ExpectAsked(_Strict):
    """Where the mean change is expected; give one of the two."""

    at_least: Annotated[float | None, Field(alias="at least")] = None
    at_most: Annotated[float | None, Field(alias="at most")] = None


class TestAsked(_Strict):
    """A test: which edits change which answers by how much."""

    __test__ = False  # not one of pytest

    name: Words
    question: Words = ""
    cases: Annotated[list[CaseAsked], Field(min_length=1, max_length=100)]
    edits: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=20)]
    metric: Literal["difference", "probability", "loss"] = "difference"
    expect: ExpectAsked
    controls: ControlsAsked = ControlsAsked()


class IntervalAnswer(BaseModel):
    """A mean with its 95 % interval."""

    mean: float | None
    low: float | None
    high: float | None


class ControlAnswer(BaseModel):
    """What a control changes, and by how much the test leads it."""

    name: str
    change: IntervalAnswer
    lead: IntervalAnswer
    verdict: str
    note: str


class TestAnswer(Answer):
    """The outcome of a test: holds, fails or undecided."""

    __test__ = False

    name: str
    question: str
    model: str
    verdict: str
    metric: str
    expect: dict[str, Any]
    cases: int
    plain: float | None
    edited: float | None
    change: IntervalAnswer
    controls: list[ControlAnswer]


def run_claim(
    bench: AgentBench,
    test: Annotated[
        str | None, Field(max_length=60, description="The name of a shipped test; see about.")
    ] = None,
    custom: Annotated[TestAsked | None, Field(description="A test of your own.")] = None,
    label_of: Annotated[
        str | None, Field(max_length=80, description="A head whose kind to test on new texts.")
    ] = None,
) -> TestAnswer:
    """Run a saved test with controls: a shipped one, your own, or that of a head's kind."""
    given = [each for each in (test, custom, label_of) if each is not None]
    if len(given) != 1:
        raise InputError(
            f"{len(given)} tests were given; give one: test=<{' or '.join(shipped_names())}>, "
            "custom={…} or label_of=<head>"
        )
    live = bench.need_model("tested")
    if test is not None and test not in shipped_names():
        raise InputError(
            f"no shipped test is named {test!r}; there is {', '.join(shipped_names())}; files are "
            "not opened, give a test of your own as custom={…}"
        )
    with EXCLUSIVE:  # two threads must not import transformers at once
        from attention_atlas.lab.saved_tests.label import label_test
        from attention_atlas.lab.saved_tests.run import run_test

    source: Any = test
    if custom is not None:
        source = _as_json(custom)
    elif label_of is not None:
        source = label_test(label_of, known_kind(bench.atlas, label_of))
    with live.held() as loaded:
        told = run_test(source, loaded).to_json()
    return TestAnswer(
        name=cut(told["name"], 300), question=cut(told["question"], 300), model=told["model"],
        verdict=told["verdict"], metric=told["metric"], expect=told["expect"],
        cases=told["cases"], plain=small(told["plain"]), edited=small(told["edited"]),
        change=_interval(told["change"]),
        controls=[
            ControlAnswer(
                name=each["name"], change=_interval(each["change"]), lead=_interval(each["lead"]),
                verdict=each["verdict"], note=each["note"],
            )
            for each in told["controls"]
        ],
    )  # fmt: skip


def _as_json(custom: TestAsked) -> dict[str, Any]:
    """Return a test as it is written in a file; refuse one that names files."""
    from attention_atlas.models.inputs import is_path

    raw = custom.model_dump(by_alias=True, exclude_none=True)
    for text in _strings([raw["cases"], raw["edits"]]):
        for part in (text, text.partition(_BLANK)[0].rstrip()):
            if is_path(part):
                raise InputError(
                    f"{cut(part, 60)!r} is the name of a file; a test of an agent reads texts only"
                )
    return {"attention_atlas_test": 1, **raw}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _interval(given: dict[str, float | None]) -> IntervalAnswer:
    return IntervalAnswer(
        **{name: None if value is None else small(value) for name, value in given.items()}
    )
