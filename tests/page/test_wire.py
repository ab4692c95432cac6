"""Packets hold what was put in, byte for byte as the schema says."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.page.hosts import typescript as types
from attention_atlas.page.wire.packing import pack, unpack
from attention_atlas.page.wire.text import Edges, RowWeights

WIRE_TS = Path(__file__).parents[2] / "web/src/source/wire.ts"


def test_a_packet_is_laid_out_as_its_docstring_says() -> None:
    weights = np.array([[0.25, 0.75]], np.float32)
    packet = pack(RowWeights(3, "L0H1", 7, weights))
    (length,) = struct.unpack("<I", packet[:4])
    header = json.loads(packet[4 : 4 + length])
    assert header == {
        "input": 3,
        "head": "L0H1",
        "first": 7,
        "weights": {"at": 0, "type": "f4", "shape": [1, 2]},
    }
    assert len(packet) % 8 == 0
    assert packet[-8:] == struct.pack("<2f", 0.25, 0.75)


@given(text=st.text(), one=st.integers(0, 40), two=st.integers(0, 40))
def test_buffers_start_at_multiples_of_eight_whatever_the_text(
    text: str, one: int, two: int
) -> None:
    first, second = np.arange(one, dtype=np.uint16), np.arange(two, dtype=np.float32)[None]
    clean = text.encode("utf-8", "replace").decode()
    edges = Edges(0, clean, [0], [1], [1], [1], 1, first, second, first, None)
    found = unpack(pack(edges))
    assert found["tower"] == clean
    assert found["row_sum"] is None
    np.testing.assert_array_equal(found["index"], first)
    np.testing.assert_array_equal(found["weight"], second)


def test_numbers_of_a_big_endian_machine_travel_little_endian() -> None:
    big = np.array([1.5, -2.0], ">f4").reshape(1, 2)
    assert pack(RowWeights(0, "L0H0", 0, big)).endswith(struct.pack("<2f", 1.5, -2.0))


def test_the_generated_types_are_what_the_schema_says() -> None:
    assert WIRE_TS.read_text(encoding="utf-8") == types.typescript()


def test_a_stale_types_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "wire.ts"
    stale.write_text("export interface About {}\n", encoding="utf-8")
    assert types.main(["--check", str(stale)]) == 1
    assert "is stale" in capsys.readouterr().err
    assert types.main([str(stale)]) == 0
    assert types.main(["--check", str(stale)]) == 0


def test_help_of_the_generator_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        types.main(["--help"])
    assert ended.value.code == 0 and "--check" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        types.main(["--chek", "wire.ts"])
    assert ended.value.code == 2
    assert list(tmp_path.iterdir()) == []
