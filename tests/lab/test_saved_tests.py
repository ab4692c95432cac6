"""Do saved tests say holds, fails and undecided where they should?"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import attention_atlas as aa
from attention_atlas.cli.app import app
from attention_atlas.lab.saved_tests.definition import SavedTest, TestCase, read_test
from attention_atlas.lab.saved_tests.fill import fill, word_positions
from attention_atlas.lab.saved_tests.label import label_test
from attention_atlas.lab.saved_tests.measure import HEADS, POSITIONS, SAME, measure_case
from attention_atlas.lab.saved_tests.run import interval, run_test, verdict_of
from attention_atlas.lab.worlds import scene
from attention_atlas.models.load import Loaded, load

NOUNS = ("lady", "horse", "house", "garden", "letter", "ship", "woman", "table")


@pytest.fixture(scope="module")
def gpt() -> Loaded:
    return load("builtin:gpt", device="cpu")


def copying(head: str = "L4H5", **more: Any) -> dict[str, Any]:
    """A word that was seen before is predicted again; without the copying head it is not."""
    cases = [
        {
            "input": f"He saw the {noun} near the church and he saw the {noun}. He saw the",
            "answer": f" {noun}",
        }
        for noun in NOUNS
    ]
    test = {
        "attention_atlas_test": 1, "name": "copying", "question": f"Does {head} copy?",
        "cases": cases, "edits": [{"edit": "ablate", "heads": [head]}], "metric": "probability",
        "expect": {"at most": -0.01}, "controls": {"heads": 3, "positions": 3, "seed": 0},
    }  # fmt: skip
    return {**test, **more}


def test_a_true_claim_holds_and_its_opposite_fails(gpt: Loaded) -> None:
    holds = run_test(copying(), gpt)
    assert holds.verdict == "holds"
    assert {each.name: each.verdict for each in holds.controls if not each.note} == {HEADS: "holds"}
    assert run_test(copying(expect={"at least": 0.01}), gpt).verdict == "fails"
    assert run_test(copying("L0H0"), gpt).verdict != "holds"


def test_the_change_is_that_of_a_plain_edit(gpt: Loaded) -> None:
    test = read_test(copying())
    found = measure_case(gpt, test, 0)
    ids = gpt.tokenizer(test.cases[0].input, return_tensors="pt")
    answer = gpt.tokenizer(" lady")["input_ids"][-1]

    def probability() -> float:
        with torch.no_grad():
            return float(gpt.model(**ids).logits[0, -1].double().softmax(-1)[answer])

    assert found.plain == pytest.approx(probability(), rel=1e-4)
    with aa.edit(gpt, aa.ablate("L4H5")):
        assert found.edited == pytest.approx(probability(), rel=1e-4)


def test_two_cases_are_too_few_to_decide(gpt: Loaded) -> None:
    test = copying()
    assert run_test({**test, "cases": test["cases"][:2]}, gpt).verdict == "undecided"


def test_the_verdict_follows_the_interval_and_the_controls() -> None:
    def verdict(effects: Any, expect: dict[str, Any], control: Any = None) -> str:
        from attention_atlas.lab.saved_tests.run import ControlOutcome

        test = SavedTest("", "", (TestCase(""),), ({},), "loss", expect)
        effects = np.asarray(effects, float)
        controls = []
        if control is not None:
            lead = test.sign * (effects - np.asarray(control, float))
            controls = [ControlOutcome(HEADS, interval(control, 0), interval(lead, 0))]
        return verdict_of(test, interval(effects, 0), controls)

    large, noisy = [1.0, 1.1, 0.9, 1.05] * 3, [1.0, -1.0, 0.5, -0.4]
    assert verdict(large, {"at least": 0.5}) == "holds"
    assert verdict(large, {"at most": 0.5}) == "fails"
    assert verdict(noisy, {"at least": 0.5}) == "undecided"
    assert verdict(large, {"between": [0.5, 1.5]}) == "holds"
    assert verdict(large, {"at least": 0.5}, [0.0, 0.1, 0.1, 0.0] * 3) == "holds"
    assert verdict(large, {"at least": 0.5}, [2.0, 2.1, 2.2, 2.0] * 3) == "fails"
    assert verdict(large, {"at least": 0.5}, [3.0, -1.0, 2.0, 0.1] * 3) == "undecided"


def test_the_shipped_test_of_bias_has_all_its_words(gpt: Loaded) -> None:
    test = read_test("bias")
    assert len(test.cases) == 24
    assert {case.answer for case in test.cases} == {"he", "she"}
    for case in test.cases:
        for text in (case.input, case.same):
            here = scene(gpt, fill(gpt, text))
            tokens = here.item.streams["decoder" if "decoder" in here.item.streams else "text"]
            positions = word_positions(here, case.words["noun"])
            said = "".join(tokens.text[position] for position in positions)
            assert said.replace("Ġ", "").strip() == case.words["noun"]


@pytest.mark.full
def test_bias_runs_with_its_controls_on_models_of_both_sorts() -> None:
    for name in ("builtin:gpt", "builtin:bert"):
        outcome = run_test("bias", name, device="cpu")
        made = {each.name for each in outcome.controls if not each.note}
        assert made == {POSITIONS, SAME}
        assert outcome.verdict in ("holds", "fails", "undecided")
        assert np.isfinite(outcome.mean.low)


def test_a_blank_is_a_mask_or_the_end_of_the_text(gpt: Loaded) -> None:
    bert = load("builtin:bert", device="cpu")
    text = "The nurse said that ___ was tired."
    assert fill(gpt, text) == "The nurse said that"
    assert fill(bert, text) == f"The nurse said that {bert.tokenizer.mask_token} was tired."


def test_names_in_edits_are_positions_of_the_case(gpt: Loaded) -> None:
    test = copying(
        edits=[{"edit": "mask", "heads": "all", "edges": [["{last}", "{noun}"]]}],
        expect={"at most": 0},
    )
    test["cases"] = [
        {**case, "words": {"noun": noun}} for case, noun in zip(test["cases"], NOUNS, strict=True)
    ]
    assert run_test(test, gpt).verdict in ("holds", "undecided", "fails")
    test["cases"][0]["words"] = {"noun": "dragon"}
    with pytest.raises(aa.InputError, match="the word 'dragon' is not in 'He saw"):
        run_test(test, gpt)


def test_the_label_of_a_head_is_tested_on_new_texts(gpt: Loaded, tmp_path: Path) -> None:
    """The kinds are those of an atlas of other texts; another kind of the same head fails."""
    atlas = aa.capture(gpt.name, ["The farmer offered the traveller his horse."] * 3,
                       path=tmp_path / "x.atlas", device="cpu", progress=False)  # fmt: skip
    atlas.measure()
    kinds = atlas.heads().set_index("head")
    sure = kinds[kinds["margin"] > 0.5].iloc[0]
    test = label_test(str(sure.name), sure["kind"])
    assert json.loads(json.dumps(test)) == test == read_test(test).to_json()
    assert run_test(test, gpt).verdict == "holds"
    other = "radioactive" if sure["kind"] == "parallel" else "parallel"
    assert run_test(label_test(str(sure.name), other), gpt).verdict == "fails"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "metric": ({"metric": "joy"}, "no metric is called 'joy'; give one of difference"),
    "expect": ({"expect": {"about": 1}}, "expects {'about': 1}; give one of at least"),
    "format": ({"attention_atlas_test": 9}, "is of format 9 and this version reads 1"),
    "field": ({"heads": "L1H1"}, "is no saved test: .*heads"),
    "edits": ({"edits": []}, "has no edits, so nothing changes"),
    "cases": ({"cases": []}, "has no cases"),
    "head": (
        {"edits": [{"edit": "ablate", "heads": ["L9H9"]}]},
        "there is no head L9H9; decoder has layers 0 to 5",
    ),
    "name": (
        {"edits": [{"edit": "mask", "tokens": "{verb}"}]},
        "an edit names {verb} and the case has last; add it to its words",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_test_that_is_wrong_is_refused_in_one_sentence(gpt: Loaded, name: str) -> None:
    changes, sentence = REFUSED[name]
    with pytest.raises(aa.AtlasError, match=sentence):
        run_test(copying(**changes), gpt)


def test_the_command_says_what_was_found_and_exits_accordingly(tmp_path: Path) -> None:
    file = tmp_path / "copying.json"
    file.write_text(json.dumps(copying()), encoding="utf-8")
    told = CliRunner().invoke(app, ["test", str(file), "builtin:gpt", "--device", "cpu"])
    assert told.exit_code == 0, told.output
    assert "copying: holds in builtin:gpt" in told.output
    assert "control, random positions: not made" in told.output
    file.write_text(json.dumps(copying(expect={"at least": 0.01})), encoding="utf-8")
    wrong = CliRunner().invoke(app, ["test", str(file), "builtin:gpt", "--device", "cpu", "--json"])
    assert wrong.exit_code == 1
    assert json.loads(wrong.output)["verdict"] == "fails"
    missing = CliRunner().invoke(app, ["test", "nothing.json", "builtin:gpt"])
    assert isinstance(missing.exception, aa.InputError)
    assert "no test is called nothing.json; give a JSON file or one of bias" in str(
        missing.exception
    )
