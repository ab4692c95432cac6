"""Does the journal know which parts are whole, in whatever order they came?"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from attention_atlas.store.parts import Contents, Journal


def contents(number: int) -> Contents:
    return Contents(
        {"sums": np.full(3, number, np.float32)}, {"rows": pa.table({"x": [number]})}, {"n": number}
    )


def test_parts_come_in_any_order_and_those_missing_are_listed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "parts")
    for number in (3, 0):
        journal.add(number, contents(number))
    again = Journal(tmp_path / "parts")
    assert list(again.parts) == [0, 3] and again.missing(5) == [1, 2, 4]
    assert again.parts == journal.parts
    assert again.arrays(3)["sums"].tolist() == [3, 3, 3]
    assert again.table(3, "rows")["x"].to_pylist() == [3]
    assert again.parts[0].facts == {"n": 0} and again.parts[0].rows == {"rows": 1}


def test_a_part_without_its_entry_or_with_a_torn_file_does_not_count(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "parts", arrays_in=tmp_path / "vectors")
    for number in range(3):
        journal.add(number, contents(number))
    (tmp_path / "parts" / "00000.json").unlink()
    torn = tmp_path / "vectors" / "00001.safetensors"
    torn.write_bytes(torn.read_bytes()[:-1])
    assert list(Journal(tmp_path / "parts", tmp_path / "vectors").parts) == [2]


def test_other_questions_have_other_journals_and_a_swept_one_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    journal = Journal.beside(path, {"seed": 0})
    journal.add(0, contents(0))
    assert list(Journal.beside(path, json.loads('{"seed": 0}')).parts) == [0]
    assert not Journal.beside(path, {"seed": 1}).parts
    journal.sweep()
    assert not Journal.beside(path, {"seed": 0}).parts
    assert not list(tmp_path.iterdir())
