"""What we write is what every safetensors reader reads."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors import safe_open
from safetensors.numpy import load_file

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files, stream, tensor_file
from attention_atlas.store.seal import CHUNK, Checksum, checksum_of
from attention_atlas.store.stream import FileStream

TYPES = st.sampled_from(["<f2", "<f4", "<f8", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "?"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__"),
        TYPES.flatmap(
            lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0))
        ),
        max_size=5,
    )
)
def test_the_reader_of_safetensors_gets_back_the_arrays(
    tmp_path: Path, given: dict[str, files.Array]
) -> None:
    path = tmp_path / "x.safetensors"
    assert files.write_tensors(path, given) == by_hand(path.read_bytes()) == files.checksum(path)
    seal = files.write_tensors(path, given, {"of": "a test"})
    content = path.read_bytes()
    assert content.count(seal.encode()) == 1
    assert seal == by_hand(content.replace(seal.encode(), b"0" * 64))
    back = load_file(path)
    assert back.keys() == given.keys()
    for name, array in given.items():
        assert back[name].dtype == array.dtype and back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"seal": f"attention-atlas-seal:{seal}", "of": "a test"}


def test_a_file_of_many_chunks_and_an_array_that_is_not_in_order(tmp_path: Path) -> None:
    wide = np.arange(3 * 1024 * 1024, dtype=np.float32).reshape(1024, -1).T
    files.write_tensors(tmp_path / "x.safetensors", {"a": wide, "b": wide[:7].astype("u1")})
    back = load_file(tmp_path / "x.safetensors")
    assert np.array_equal(back["a"], wide) and np.array_equal(back["b"], wide[:7].astype("u1"))


def by_hand(content: bytes) -> str:
    """As docs/format.md has it."""
    blocks = [content[start : start + 2**22] for start in range(0, len(content), 2**22)]
    sums = b"".join(zlib.crc32(block).to_bytes(4, "little") for block in blocks)
    return hashlib.sha256(sums).hexdigest()


@settings(max_examples=40)
@given(st.lists(st.sampled_from([0, 1, 1000, 2**22 - 1, 2**22, 2**22 + 1]), max_size=4))
def test_a_checksum_does_not_depend_on_how_the_bytes_arrive(sizes: list[int]) -> None:
    digest = Checksum()
    for number, size in enumerate(sizes):
        digest.update(bytes([number + 1]) * size)
    whole = b"".join(bytes([number + 1]) * size for number, size in enumerate(sizes))
    assert digest.hexdigest() == by_hand(whole)


NAMES = st.text(max_size=9)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
)


@settings(max_examples=40)
@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_json_is_read_back_as_it_was(content: dict[str, object]) -> None:
    assert json.loads(files.json_text(content)) == content


def test_json_has_a_line_for_each_entry_and_one_for_a_list_of_numbers() -> None:
    content = {"layers": [{"layer": 0, "heads": [1, 2]}, {"layer": 1}], "none": {}}
    lines = ["{", ' "layers": [', "  {", '   "layer": 0,', '   "heads": [1, 2]', "  },",
             '  {"layer": 1}', " ],", ' "none": {}', "}", ""]  # fmt: skip
    assert files.json_text(content).split("\n") == lines


def test_damage_is_found_in_whichever_part_of_a_large_file_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are compared by several threads; the seal lies in the first."""
    monkeypatch.setattr(tensor_file, "SPAN", 2**22)
    path = tmp_path / "x.safetensors"
    numbers = np.random.default_rng(0).integers(0, 255, 11 * 2**20, np.uint8)
    checksum = files.write_tensors(path, {"a": numbers}, {"of": "a test"})
    assert tensor_file.TensorFile(path).verify_seal()
    content = bytearray(path.read_bytes())
    assert checksum == by_hand(bytes(content).replace(checksum.encode(), b"0" * 64))
    for place in (8 + 300, 2**22 + 5, 2**23 - 1, len(content) - 1):
        content[place] ^= 1
        path.write_bytes(content)
        with pytest.raises(StoreError, match="checksum does not match"):
            tensor_file.TensorFile(path).verify_seal()
        content[place] ^= 1


def test_a_file_in_memory_has_the_same_tensors_and_the_same_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    given = {"a": np.arange(12, dtype="<f4").reshape(3, 4), "b": np.arange(5, dtype="<i2")}
    checksum = files.write_tensors(path, given)
    held = tensor_file.TensorFile(path)
    held.hold(checksum)
    path.unlink()  # it is not read again
    for name, expected in given.items():
        np.testing.assert_array_equal(held.tensor(name), expected)
    np.testing.assert_array_equal(held.part("a", np.array([2, 0])), given["a"][[2, 0]])
    with pytest.raises(ValueError, match="read-only"):
        held.tensor("a")[0] = 1
    files.write_tensors(path, given)
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(StoreError, match="checksum does not match"):
        tensor_file.TensorFile(path).hold(checksum)


SIZES = (1, stream.PAGE, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 11 * CHUNK + stream.PAGE + 7)


@pytest.mark.parametrize("kind", ["past the cache", "through it", "refused at a write"])
def test_a_file_has_the_bytes_it_was_given_however_they_are_cut(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "through it":
        monkeypatch.delattr(os, "O_DIRECT", raising=False)
    elif kind == "refused at a write":
        monkeypatch.setattr(os, "write", refusing(os.write))
    dice = np.random.default_rng(0)
    for size in SIZES:
        data = dice.integers(0, 255, size, np.uint8).tobytes()
        cuts = sorted(dice.integers(0, size + 1, 5))
        with FileStream(tmp_path / "x", size) as file:
            for start, end in pairwise([0, *cuts, size]):
                file.write(data[start:end])
            assert file.finish() == checksum_of(data)
            file.replace(size // 2, b"x")
        assert (tmp_path / "x").read_bytes() == data[: size // 2] + b"x" + data[size // 2 + 1 :]


def refusing(write: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    """Return a function that refuses to write past the cache, as some file systems do."""
    import fcntl  # not on Windows

    def refuse(file: int, data: Any) -> int:
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT:
            raise OSError(errno.EINVAL, "invalid argument")
        return write(file, data)

    return refuse


def test_a_disk_that_fails_while_the_next_chunk_is_made_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int, _data: object) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "write", full)
    for size in (2**20, 2**26):
        with pytest.raises(StoreError, match="the disk is full"):
            files.write_tensors(tmp_path / "x.safetensors", {"a": np.zeros(size, np.uint8)})
        assert not list(tmp_path.iterdir())


@pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="counts threads as Linux lists them"
)
def test_a_table_is_read_by_the_thread_that_asks(tmp_path: Path) -> None:
    """Threads of Arrow's that hold our bytes when Python ends would abort the process."""
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"number": range(100_000)}), path)
    program = (
        "import os, sys, pathlib\n"
        "from attention_atlas.store.files import read_table\n"
        "count = lambda: len(os.listdir('/proc/self/task'))\n"
        "before, table = count(), read_table(pathlib.Path(sys.argv[1]))\n"
        "print(count() - before, len(table))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True
    )
    assert told.stdout.split() == ["0", "100000"], told.stderr
