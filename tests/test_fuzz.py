"""The attacks again, a few of each; `python -m tests.fuzz` runs as many as one likes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from tests.atlases import word_tokenizer
from tests.fuzz.__main__ import small_model
from tests.fuzz.atlas_files import random_damage, structured_damage
from tests.fuzz.calls import Targets, run_calls, run_targets
from tests.fuzz.commands import cases, run_commands
from tests.fuzz.made import ATLASES, files_of, make_atlas, small_writer
from tests.fuzz.studies import studies
from tests.fuzz.use import REFUSED
from tests.made_once import MadeOnce

FEW: tuple[Any, ...] = (None, "x", -1, 1.5, [], {"x": 1})


@pytest.fixture(scope="module")
def attacked(made_once: MadeOnce) -> Path:
    return made_once("attacked", make_atlas) / "x.atlas"


def test_bytes_changed_in_any_file_are_noticed(attacked: Path, tmp_path: Path) -> None:
    count = len(files_of(attacked))
    counts, defects = random_damage(attacked, tmp_path, count, seed=11)
    assert defects == []
    assert sum(row[REFUSED] for row in counts.values()) == count


@pytest.mark.full
def test_wrong_structure_with_right_checksums_gives_errors_of_ours_alone(
    attacked: Path, tmp_path: Path
) -> None:
    counts, defects = structured_damage(attacked, tmp_path, 15, seed=12)
    assert defects == []
    assert sum(row[REFUSED] for row in counts.values()) > 0


@pytest.mark.full
def test_wrong_masks_biases_and_towers_give_errors_of_ours_alone(
    made_once: MadeOnce, tmp_path: Path
) -> None:
    atlas = made_once("attacked forms", ATLASES["forms"]) / "x.atlas"
    counts, defects = structured_damage(atlas, tmp_path, 6, seed=13)
    assert defects == []
    assert sum(row[REFUSED] for row in counts.values()) > 0


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in ATLASES if name != "pictures"])
def test_any_damage_to_other_atlases_is_noticed_or_is_an_error_of_ours(
    name: str, made_once: MadeOnce, tmp_path: Path
) -> None:
    atlas = made_once(f"attacked {name}", ATLASES[name]) / "x.atlas"
    count = len(files_of(atlas))
    counts, defects = random_damage(atlas, tmp_path, count, seed=14)
    assert (defects, sum(row[REFUSED] for row in counts.values())) == ([], count)
    _, defects = structured_damage(atlas, tmp_path, 30, seed=15)
    assert defects == []


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Targets:
    return studies(small_writer(), word_tokenizer(), tmp_path_factory.mktemp("studies"))


@pytest.mark.parametrize(
    ("name", "odd", "said"),
    [
        ("capture", {"path": "\ud800"}, "cannot be an atlas"),
        ("capture", {"edits": 3}, "give a list"),
        ("capture", {"edits": ["x"]}, "an edit is 'x'"),
        ("patching", {"pairs": 3}, "give a list"),
        ("patching", {"positions": []}, "no position was given"),
        ("patching", {"positions": 10**30}, "count from zero"),
        ("patching", {"through": "L0H0"}, "no head comes before L0H0"),
        ("patching, one part of a pair", {"answer": True}, "not one token"),
        ("patching, one part of a pair", {"answer": "\ud800"}, "half of a character"),
        ("patching, one part of a pair", {"align": 3}, "give a list"),
        ("only_heads", {"inputs": np.zeros((2, 2))}, "not a sound"),
        ("view.save", {"path": 3}, "path is 3"),
        ("view.save", {"exact": np.zeros(2)}, "give True or False"),
        ("view.picks", {"picks": 3}, "give a dict"),
        ("patching.save", {"path": 3}, "path is 3"),
        ("patching.picture", {"direction": np.zeros(2)}, "direction is a ndarray"),
        ("text_view", {"atlas": 3}, "give an atlas"),
    ],
)
def test_calls_that_run_a_model_say_what_is_wrong(
    called: Targets, name: str, odd: dict[str, Any], said: str
) -> None:
    function, given = called[name]
    with pytest.raises(aa.AtlasError, match=said):
        function(**{**given, **odd})


@pytest.mark.full
def test_studies_with_wrong_arguments_say_what_is_taken(
    called: Targets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some odd values are names of folders
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    _, defects = run_targets(called, FEW)
    assert defects == []


@pytest.mark.full
def test_calls_with_wrong_arguments_say_what_is_taken(attacked: Path) -> None:
    _, defects = run_calls(aa.open(attacked), small_model(), FEW)
    assert defects == []


@pytest.mark.full
def test_no_command_ends_in_a_traceback(attacked: Path, tmp_path: Path) -> None:
    _, defects = run_commands(cases(attacked, tmp_path))
    assert defects == []
