"""Do the effects of heads reach the atlas, its tables and its page?"""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import attention_atlas as aa
from attention_atlas.cli.app import app
from tests.lab.test_causal import TEXTS

run = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("causal") / "gpt.atlas"
    aa.capture("builtin:gpt", TEXTS[:3], path=path, device="cpu", progress=False)
    return path


def test_effects_become_scores_of_the_atlas(folder: Path) -> None:
    asked = ["causal", str(folder), "--model", "builtin:gpt", "--by", "mean", "--json"]
    done = run.invoke(app, asked)
    assert done.exit_code == 0, done.output
    printed = {row["head"]: row for row in json.loads(done.stdout)}
    table = aa.causal("builtin:gpt", TEXTS[:3], by="mean", progress=False).set_index("head")
    heads = aa.open(folder).heads().set_index("head")
    for name, column in (("causal", "effect"), ("causal-q", "q"), ("causal-direct", "direct")):
        assert np.array_equal(heads[name], table[column].loc[heads.index])
    assert printed["L4H5"]["effect"] == pytest.approx(heads.loc["L4H5", "causal"])
    scores = aa.open(folder).scores()
    assert scores is not None
    rows = scores.table[scores.table["measure"] == "causal"].set_index("head")
    for score, column in (("low", "low"), ("high", "high"), ("chance", "control"), ("n", "n")):
        assert np.array_equal(rows[score], table[column].loc[rows.index])
    assert "its mean over other inputs" in scores.measures["causal"]["formula"]
    assert {"entropy", "kind"} <= set(heads.columns)


def test_another_model_is_refused(folder: Path) -> None:
    with pytest.raises(aa.ModelError, match=r"was captured from a GPT2.*give builtin:gpt"):
        run.invoke(app, ["causal", str(folder), "--model", "builtin:bert"], catch_exceptions=False)
