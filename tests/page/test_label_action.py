"""The label of a head is tested from its card: the answer is that of the saved test itself."""

import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import attention_atlas as aa
from attention_atlas.lab.saved_tests import run
from attention_atlas.lab.saved_tests.definition import read_test
from attention_atlas.lab.saved_tests.label import label_test
from attention_atlas.lab.saved_tests.measure import measure_label
from attention_atlas.measure.kinds import MIXED
from attention_atlas.models.load import load
from attention_atlas.page.answers.heads import measured
from attention_atlas.page.live import label
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack


@pytest.fixture(scope="module")
def live(gpt: aa.Atlas) -> Answers:
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")])
    return answers


@pytest.fixture(scope="module")
def kinds(gpt: aa.Atlas) -> Any:
    """Kinds and margins by head."""
    return measured(gpt)[1].kinds.set_index("head")


def asked(answers: Answers, head: str) -> Any:
    packet, done = answers.perform("test_label", {"head": head})
    content = unpack(packet)
    return content if done else content["error"]


def test_the_verdict_is_that_of_the_saved_test(live: Answers, kinds: Any) -> None:
    named = kinds[kinds["kind"] != MIXED].sort_values("margin")
    for head in (str(named.index[-1]), str(named.index[0])):
        kind = named.loc[head, "kind"]
        expected = run.run_test(label_test(head, kind), load("builtin:gpt"))
        answer = asked(live, head)
        assert (answer["head"], answer["kind"]) == (head, kind)
        assert answer["verdict"] == expected.verdict
        for bound in (expected.mean.low, expected.mean.high):
            assert f"{abs(bound):.2f}" in answer["sentence"]
        assert answer["sentence"].startswith("On 24 new sentences")


@pytest.mark.parametrize(
    ("verdict", "bounds", "words"),
    [
        ("holds", (0.3, 0.2, 0.4), "leads that for the next kind by +0.30 on average (95 % inter"),
        ("fails", (-0.3, -0.4, -0.2), "another kind leads parallel by 0.30 on average (95 % inter"),
        ("undecided", (0.1, -0.1, 0.3), "(95 % interval −0.10 to +0.30, which includes 0)."),
        ("undecided", (0.1, float("nan"), float("nan")), "too little attention to judge."),
    ],
)
def test_each_verdict_is_said_in_one_sentence(
    live: Answers, monkeypatch: pytest.MonkeyPatch, verdict: str, bounds: Any, words: str
) -> None:
    def outcome(test: Any, _model: Any) -> run.Outcome:
        read, table = read_test(test), pd.DataFrame({"input": ["one", "two"]})
        return run.Outcome(read, "gpt", verdict, run.Interval(*bounds), 0, 0, (), table)

    monkeypatch.setattr(run, "run_test", outcome)
    monkeypatch.setattr(label, "measured", lambda atlas: (atlas, _scores("parallel")))
    answer = asked(live, "L0H0")
    assert answer["verdict"] == verdict
    assert words in answer["sentence"]
    assert answer["sentence"].startswith("On 2 new") and answer["sentence"].count(". ") == 0


def _scores(kind: str | None) -> Any:
    class Known:
        kinds = pd.DataFrame({"head": ["L0H0"], "kind": [kind]})

    return Known


@pytest.mark.parametrize(
    ("kind", "words"), [(MIXED, "L0H0 is mixed, no kind"), (None, "L0H0 has no kind, so there is")]
)
def test_a_head_without_a_kind_says_so(
    live: Answers, monkeypatch: pytest.MonkeyPatch, kind: str | None, words: str
) -> None:
    monkeypatch.setattr(label, "measured", lambda atlas: (atlas, _scores(kind)))
    assert asked(live, "L0H0").startswith(words)


def test_what_cannot_be_tested_is_refused_in_a_sentence(gpt: aa.Atlas, live: Answers) -> None:
    (alone,) = make_answers([gpt])
    assert "attention-atlas serve x.atlas --model MODEL" in asked(alone, "L0H0")
    assert asked(live, "L9H0") == f"there is no head L9H0 in {Path(gpt.path).name}"
    assert asked(live, "5.1").startswith("no head is named '5.1'")
    assert len(asked(live, "x" * 5000)) < 600


def test_packets_are_answered_while_a_label_is_tested(
    live: Answers, kinds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, may_end = threading.Event(), threading.Event()

    def slow(*given: Any) -> Any:
        running.set()
        assert may_end.wait(60)
        return measure_label(*given)

    monkeypatch.setattr(run, "measure_label", slow)
    head = str(kinds[kinds["kind"] != MIXED].index[0])
    thread = threading.Thread(target=asked, args=[live, head])
    thread.start()
    assert running.wait(60)
    for path in ("about", "heads", f"card/{head}", "edges/0/decoder"):
        assert live.packet(path)[1]
    may_end.set()
    thread.join()
