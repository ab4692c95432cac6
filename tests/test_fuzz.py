"""The attacks again, a few of each; `python -m tests.fuzz` runs as many as one likes."""

from pathlib import Path
from typing import Any

import pytest

import attention_atlas as aa
from tests.fuzz.__main__ import small_model
from tests.fuzz.atlas_files import random_damage, structured_damage
from tests.fuzz.calls import run_calls
from tests.fuzz.commands import cases, run_commands
from tests.fuzz.made import files_of, make_atlas
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
def test_calls_with_wrong_arguments_say_what_is_taken(attacked: Path) -> None:
    _, defects = run_calls(aa.open(attacked), small_model(), FEW)
    assert defects == []


@pytest.mark.full
def test_no_command_ends_in_a_traceback(attacked: Path, tmp_path: Path) -> None:
    _, defects = run_commands(cases(attacked, tmp_path))
    assert defects == []
