"""What a job returns arrives in the other process as it was, without pickle."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attention_atlas.engine.local import Local
from attention_atlas.engine.parcel import Parcel, pack, pack_problem, receive, send, unpack
from attention_atlas.engine.worker import outcome
from attention_atlas.names.errors import AtlasError, InputError, StoreError
from attention_atlas.names.wanted import UnwantedError
from attention_atlas.store import arrived
from attention_atlas.store.parts import Contents, Journal
from tests.engine.jobs import jobs, part, two_parts


def through_a_pipe(parcel: Parcel) -> Any:
    pipe = io.BytesIO()
    send(parcel, pipe)
    pipe.seek(0)
    return unpack(receive(pipe))


def same(one: Contents, other: Contents) -> bool:
    assert {name: (a.dtype, a.shape) for name, a in one.arrays.items()} == {
        name: (a.dtype, a.shape) for name, a in other.arrays.items()
    }
    return (
        all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)
        and one.tables == other.tables
        and one.facts == other.facts
    )


def test_arrays_tables_and_facts_arrive_as_they_were() -> None:
    assert same(through_a_pipe(pack(part({"number": 3}))), part({"number": 3}))


def test_several_parts_arrive_by_name() -> None:
    got = through_a_pipe(pack(two_parts({"number": 2})))
    assert list(got) == ["contents", "scores"]
    assert same(got["contents"], part({"number": 2}))


@pytest.mark.parametrize("value", [None, 3, "text", [1, [2.5, None]], {"a": {"b": [True]}}])
def test_json_arrives_as_it_was(value: Any) -> None:
    assert through_a_pipe(pack(value)) == value


@pytest.mark.parametrize("problem", [InputError("a"), StoreError("b"), AtlasError("c")])
def test_our_errors_arrive_as_what_they_are(problem: AtlasError) -> None:
    with pytest.raises(type(problem), match=str(problem)) as caught:
        through_a_pipe(pack_problem(problem))
    assert type(caught.value) is type(problem)


def test_an_error_of_another_room_is_still_one_of_ours() -> None:
    with pytest.raises(AtlasError, match="nobody wants it"):
        through_a_pipe(pack_problem(UnwantedError("nobody wants it")))


def test_a_pipe_that_ends_in_the_middle_is_noticed() -> None:
    pipe = io.BytesIO()
    send(pack(part({"number": 3})), pipe)
    with pytest.raises(EOFError):
        receive(io.BytesIO(pipe.getvalue()[:-1]))


def test_errors_of_other_libraries_name_the_job() -> None:
    with pytest.raises(AtlasError, match="0 failed: ZeroDivisionError: by hand"):
        unpack(outcome(jobs("fail", 1)[0]))


def test_other_processes_return_the_same() -> None:
    got: dict[str, Contents] = {}
    Local(workers=2).run(jobs("part", 3), lambda job, result: got.update({job.name: result}))
    assert all(same(got[str(n)], part({"number": n})) for n in range(3))


def journal_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_part_that_comes_by_a_shared_folder_is_the_same_files(
    scheme: str, tmp_path: Path
) -> None:
    shared = f"{scheme}{tmp_path / 'shared'}"
    plain, moved = Journal(tmp_path / "plain"), Journal(tmp_path / "moved")
    plain.add(4, part({"number": 4}))
    result = unpack(outcome(jobs("part", 5, large=True)[4], shared))
    assert isinstance(result, arrived.Arrived)
    assert moved.add(4, result) == plain.parts[4]
    assert journal_of(tmp_path / "moved") == journal_of(tmp_path / "plain")
    assert list((tmp_path / "shared").iterdir()) == []


def test_damage_on_the_way_from_a_url_is_noticed(tmp_path: Path) -> None:
    left = unpack(outcome(jobs("part", 1, large=True)[0], f"file://{tmp_path}/shared"))
    path = next((tmp_path / "shared").glob("*/arrays.safetensors"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    journal = Journal(tmp_path / "parts")
    with pytest.raises(StoreError, match=r"arrays.safetensors was damaged on its way"):
        journal.add(0, left)
    assert not journal.parts and not (tmp_path / "parts" / "00000.safetensors").exists()


def test_a_shared_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        arrived.check_shared(str(tmp_path / "file"))
    with pytest.raises(StoreError, match=r"the shared folder nothing://x.* cannot be used"):
        arrived.check_shared("nothing://x")
