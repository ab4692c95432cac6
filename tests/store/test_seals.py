"""Is damage noticed, wherever it is, and refused by a sentence?"""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import attention_atlas as aa
from attention_atlas.store import files, lock, tensor_file
from attention_atlas.store.lock import locked
from attention_atlas.store.parts import Contents, Journal
from attention_atlas.store.tensor_file import TensorFile
from tests.fuzz.damage import change_digit, write_sealed_json
from tests.planted import planted

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def atlas(tmp_path: Path) -> aa.Atlas:
    return planted(tmp_path / "x.atlas", 3)


def test_another_digit_anywhere_in_the_manifest_is_refused(atlas: aa.Atlas) -> None:
    path = atlas.path / "atlas.json"
    whole = path.read_bytes()
    digits = [place for place, byte in enumerate(whole) if 48 <= byte <= 57]
    for place in digits:
        other = bytes([48 + (whole[place] - 48 + 1) % 10])
        path.write_bytes(whole[:place] + other + whole[place + 1 :])
        with pytest.raises(aa.StoreError):
            aa.open(atlas.path)
    path.write_bytes(whole)
    assert len(aa.open(atlas.path)) == 3


def test_a_manifest_without_its_seal_is_refused_and_one_of_format_1_says_so(
    atlas: aa.Atlas, caplog: pytest.LogCaptureFixture
) -> None:
    path = atlas.path / "atlas.json"
    raw = files.read_json(path)
    path.write_text(json.dumps(raw))
    with pytest.raises(aa.StoreError, match="no checksum"):
        aa.open(atlas.path)
    path.write_text(json.dumps({**raw, "format": 1}))
    before = atlas.weights(0, "L0H1")
    assert np.array_equal(aa.open(atlas.path).weights(0, "L0H1"), before)
    assert "without checksums" in caplog.text


def _first_layer(raw: dict[str, Any]) -> dict[str, Any]:
    layer: dict[str, Any] = raw["towers"][0]["layers"][0]
    return layer


WRONG: dict[str, Change] = {
    "tables lack": lambda raw: raw.update(tables={}),
    "groups of layer 0": lambda raw: _first_layer(raw).update(groups=0),
    "heads in 2 groups": lambda raw: _first_layer(raw).update(groups=2),
    "receipt lacks": lambda raw: raw["towers"][0].update(name="renamed"),
    "not a whole number": lambda raw: raw.update(inputs=10**30),
    "a shard is called": lambda raw: raw["shards"][0].update(file="../../etc/passwd"),
    "not a text": lambda raw: raw.update(model="\ud800"),
    "is missing": lambda raw: raw.pop("receipt"),
    "is not known": lambda raw: raw.update(surprise=1),
    "shards hold": lambda raw: raw.update(shards=[]),
    "not a number": lambda raw: _first_layer(raw).update(scale="large"),
    "scale of layer 0": lambda raw: _first_layer(raw).update(scale="nan"),
    "no stream": lambda raw: _first_layer(raw).update(queries="elsewhere"),
}


@pytest.mark.parametrize("said", WRONG)
def test_a_manifest_that_is_sealed_but_wrong_is_refused(atlas: aa.Atlas, said: str) -> None:
    raw = files.read_json(atlas.path / "atlas.json")
    WRONG[said](raw)
    write_sealed_json(atlas.path / "atlas.json", raw)
    with pytest.raises(aa.StoreError, match=said):
        aa.open(atlas.path)


def test_a_pipe_in_place_of_a_file_is_refused_at_once(atlas: aa.Atlas) -> None:
    for name in ("tokens.parquet", "vectors/00000.safetensors"):
        (atlas.path / name).unlink()
        os.mkfifo(atlas.path / name)
    fresh = aa.open(atlas.path)
    with pytest.raises(aa.StoreError, match="plain file"):
        fresh.tokens()
    with pytest.raises(aa.StoreError, match="missing"):
        fresh.weights(0, "L0H0")


@pytest.mark.parametrize("name", ["scores.parquet", "kinds.parquet", "layouts/pca-2d.safetensors"])
def test_what_is_added_later_is_sealed_too(atlas: aa.Atlas, name: str) -> None:
    atlas.measure(progress=False)
    atlas.layout("pca", progress=False)
    data = bytearray((atlas.path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (atlas.path / name).write_bytes(data)
    with pytest.raises(aa.StoreError, match="checksum does not match"):
        aa.open(atlas.path).scores() if "parquet" in name else atlas.layout("pca", progress=False)


def test_kinds_of_another_measuring_are_refused(atlas: aa.Atlas, tmp_path: Path) -> None:
    atlas.measure(progress=False)
    shutil.copy(atlas.path / "kinds.parquet", tmp_path / "kinds.parquet")
    atlas.measure(progress=False, seed=1, again=True)
    shutil.copy(tmp_path / "kinds.parquet", atlas.path / "kinds.parquet")
    with pytest.raises(aa.StoreError, match="not of one measuring"):
        aa.open(atlas.path).scores()


CUT = """
import sys, attention_atlas as aa
atlas = aa.open(sys.argv[1])
atlas.weights(0, "L0H0")
with open(atlas.path / "vectors/00000.safetensors", "r+b") as file:
    file.truncate(4096)
try:
    atlas.weights(1, "L0H1")
except aa.StoreError as problem:
    print(problem)
"""


def test_a_shard_cut_off_while_it_is_read_is_a_sentence_and_no_crash(atlas: aa.Atlas) -> None:
    command = [sys.executable, "-c", CUT, str(atlas.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "changed while it was open" in done.stdout


def test_an_atlas_deleted_while_it_is_open_is_a_sentence(atlas: aa.Atlas) -> None:
    fresh = aa.open(atlas.path)
    shutil.rmtree(atlas.path)
    for read in (fresh.tokens, fresh.inputs, lambda: fresh.weights(0, "L0H0")):
        with pytest.raises(aa.StoreError, match="missing"):
            read()


def test_a_part_that_was_damaged_is_made_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "parts")
    for number in range(3):
        journal.add(number, Contents({"sums": np.full(3, number, np.float32)}))
    path = tmp_path / "parts" / "00001.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # the size stays the same
    path.write_bytes(data)
    facts = tmp_path / "parts" / "00002.json"
    facts.write_bytes(change_digit(bytearray(facts.read_bytes()), random.Random(0)))
    assert list(Journal(tmp_path / "parts").parts) == [0]


def test_two_captures_into_one_folder_are_told_apart_by_a_lock(tmp_path: Path) -> None:
    folder = tmp_path / "x.atlas"
    with locked(folder), pytest.raises(aa.StoreError, match="another capture is writing into"):
        aa.capture("builtin:gpt", "A cat.", path=folder, progress=False)
    assert not folder.exists()  # nothing is left of a capture that wrote nothing


class LikeWindows:
    """The locks of Windows, played by those of this system."""

    LK_NBLCK = 2

    @classmethod
    def locking(cls, descriptor: int, mode: int, count: int) -> None:
        fcntl = pytest.importorskip("fcntl")
        assert (mode, count) == (cls.LK_NBLCK, 1)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None


def test_windows_has_a_lock_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    monkeypatch.setattr(lock, "msvcrt", LikeWindows)
    folder = tmp_path / "x.atlas"
    with locked(folder):
        with pytest.raises(aa.StoreError, match="another capture is writing into"), locked(folder):
            raise AssertionError("both hold it")
        assert (folder / lock.LOCK).exists()
    assert not folder.exists()
    with locked(folder):
        pass


def test_a_system_without_locks_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    monkeypatch.setattr(lock, "msvcrt", None)
    with locked(tmp_path / "x.atlas"), locked(tmp_path / "x.atlas"):
        pass


@pytest.mark.parametrize(
    "header",
    [
        b"[]", b"{", b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,99]}}',
        b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1e30],"data_offsets":[0,4]}}', b'{"a":1}',
        b'{"__metadata__":{"x":1}}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_header_that_lies_is_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    with pytest.raises(aa.StoreError, match="damaged"):
        TensorFile(path)


def test_parts_of_a_tensor_are_those_of_numpy(tmp_path: Path) -> None:
    luck = np.random.default_rng(0)
    array = luck.standard_normal((5, 9, 3)).astype(np.float32)
    files.write_tensors(tmp_path / "x.safetensors", {"a": array, "b": array[0, :, 0]})
    file = TensorFile(tmp_path / "x.safetensors")
    for first in ([0], [0, 1, 2], [4, 1], [3, 3]):
        for second in (slice(None), slice(2, 7), [0, 1, 5], [8, 0]):
            columns = second if isinstance(second, slice) else np.array(second)
            expected = array[first][:, columns]
            assert np.array_equal(file.part("a", np.array(first), columns), expected)
    assert np.array_equal(file.tensor("b"), array[0, :, 0])
    with pytest.raises(aa.StoreError, match="shorter than its blocks say"):
        file.part("a", np.array([5]))


@pytest.mark.parametrize("piece", [7, 100, 2**18])
def test_a_seal_is_compared_whatever_the_pieces_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(tensor_file, "_PIECE", piece)
    path = tmp_path / "x.safetensors"
    files.write_tensors(path, {"a": np.arange(300, dtype=np.float32)}, {"of": "test"})
    assert TensorFile(path).verify_seal()
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(aa.StoreError, match="checksum"):
        TensorFile(path).verify_seal()


@pytest.mark.parametrize(
    "facts",
    ["x", {"layers": {"decoder.L0": "x"}}, {"layers": {"decoder.L0": {"tensors": 1, "error": 0}}},
     {"readout": {"tower": "decoder"}}, {"missing": [1]}],
)  # fmt: skip
def test_a_manifest_that_lies_about_outputs_is_refused(atlas: aa.Atlas, facts: Any) -> None:
    path = atlas.path / "atlas.json"
    raw = files.read_json(path)
    raw.pop("seal", None)
    write_sealed_json(path, {**raw, "options": {**raw["options"], "output": facts}})
    with pytest.raises(aa.StoreError, match=r"atlas\.json is missing or damaged"):
        _ = aa.open(atlas.path).output


@pytest.mark.parametrize("column", ["word", "segment", "id"])
def test_tokens_without_a_column_of_theirs_are_refused(atlas: aa.Atlas, column: str) -> None:
    path = atlas.path / "tokens.parquet"
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    raw = files.read_json(atlas.path / "atlas.json")
    raw["tables"]["tokens.parquet"] = files.checksum(path)
    files.write_json(atlas.path / "atlas.json", raw)
    with pytest.raises(aa.StoreError, match=column):
        aa.open(atlas.path).tokens(0)
