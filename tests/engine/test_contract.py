"""Every engine does the same: each job once, the same bytes, errors that say what is wrong.

Ray takes half a minute to start, so its side is marked full.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attention_atlas.engine.cluster import Cluster
from attention_atlas.engine.job import Engine, Job
from attention_atlas.engine.local import Local
from attention_atlas.names.errors import AtlasError, InputError, StoreError
from tests.engine.jobs import jobs, part

ENGINES: dict[str, Engine] = {
    "local": Local(),
    "local, two processes": Local(workers=2),
    "ray": Cluster(workers=2),
}


@pytest.fixture(
    params=["local", "local, two processes", pytest.param("ray", marks=pytest.mark.full)]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "ray":
        request.getfixturevalue("ray")
    return ENGINES[request.param]


def test_every_job_is_done_once_and_returns_what_it_made(engine: Engine) -> None:
    got: dict[str, Any] = {}

    def done(job: Job, result: Any) -> None:
        assert job.name not in got
        got[job.name] = result

    engine.run(iter(jobs("part", 7)), done)
    assert sorted(got) == [str(n) for n in range(7)]
    for name, contents in got.items():
        expected = part({"number": int(name)})
        assert contents.facts == expected.facts and contents.tables == expected.tables
        for key, array in expected.arrays.items():
            assert np.array_equal(contents.arrays[key], array)


def test_no_jobs_are_no_work(engine: Engine) -> None:
    engine.run([], lambda job, result: pytest.fail("there was no job"))


def test_our_errors_end_the_run_as_they_are(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"number \d is not wanted"):
        engine.run(jobs("refuse", 3), lambda job, result: None)


def test_what_cannot_be_written_ends_the_run(engine: Engine) -> None:
    def done(job: Job, result: int) -> None:
        if result == 2:
            raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        engine.run(jobs("made", 9), done)


def test_a_process_keeps_what_it_made_between_jobs(engine: Engine) -> None:
    """Of eight jobs all but the first of each process find what that one made."""
    got: list[tuple[int, int]] = []
    engine.run(jobs("where", 8, held="key"), lambda job, result: got.append(tuple(result)))
    for process in {process for process, _ in got}:
        counts = sorted(count for number, count in got if number == process)
        assert counts == list(range(1, len(counts) + 1))
    assert len({process for process, _ in got}) <= 2


def test_a_killed_process_of_this_machine_is_told_and_what_was_done_is_kept() -> None:
    done: list[int] = []
    work = jobs("kill_always", 4, deadly=3)
    with pytest.raises(AtlasError, match="a worker process was stopped; run the same command"):
        Local(workers=2).run(work, lambda job, result: done.append(result))
    assert 3 not in done and len(done) >= 2, "one worker had two jobs before, or both had one"


@pytest.mark.full
@pytest.mark.usefixtures("ray")
def test_a_worker_of_ray_that_dies_is_replaced_and_its_job_done(tmp_path: Path) -> None:
    got: list[int] = []
    told = tmp_path / "told"
    work = jobs("kill_once", 6, deadly=2, told=str(told))
    Cluster(workers=2).run(work, lambda job, result: got.append(result))
    assert told.exists() and sorted(got) == list(range(6))


@pytest.mark.full
@pytest.mark.usefixtures("ray")
def test_a_job_that_ends_every_worker_is_given_up(tmp_path: Path) -> None:
    message = "job 1 was given up: 3 workers died while they ran it .* the same command resumes"
    with pytest.raises(AtlasError, match=message):
        Cluster(workers=2).run(jobs("kill_always", 3, deadly=1), lambda job, result: None)


@pytest.mark.full
@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_large_results_come_by_the_shared_folder_which_is_left_empty(
    scheme: str, tmp_path: Path
) -> None:
    from attention_atlas.store.parts import Journal

    journal = Journal(tmp_path / "parts")
    engine = Cluster(workers=2, shared=f"{scheme}{tmp_path / 'shared'}")

    def done(job: Job, result: Any) -> None:
        journal.add(int(job.name), result)

    engine.run(jobs("part", 3, large=True), done)
    assert [journal.arrays(n)["wide"][0, 0] for n in range(3)] == [0, 1, 2]
    assert list((tmp_path / "shared").iterdir()) == []


@pytest.mark.full
@pytest.mark.usefixtures("ray")
def test_a_machine_that_the_cluster_does_not_have_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from attention_atlas.engine import cluster

    monkeypatch.setattr(cluster, "_PATIENCE", 0)
    job = Job("0", "tests.engine.jobs:made", {"number": 0}, gpus=4)
    with pytest.raises(AtlasError, match="no machine of the cluster has 1 CPU and 4 GPU"):
        Cluster().run([job], lambda job, result: None)


OUT_OF_MEMORY = """
import ray
ray.init(
    address="local", num_cpus=1, object_store_memory=80 * 2**20, include_dashboard=False,
    log_to_driver=False, logging_level="error",
    _system_config={"memory_usage_threshold": 0.001, "memory_monitor_refresh_ms": 100},
)
from attention_atlas.engine.cluster import Cluster
from attention_atlas.engine.job import Job
from attention_atlas.names.errors import AtlasError
try:
    Cluster(workers=1).run([Job("0", "time:sleep", 60)], lambda job, result: None)
except AtlasError as problem:
    print(problem)
"""


@pytest.mark.full
def test_a_machine_without_memory_is_the_reason_that_is_told() -> None:
    """Ray is told that a thousandth of the memory is all there is, so it ends every worker."""
    command = [sys.executable, "-c", OUT_OF_MEMORY]
    for _ in range(3):  # Ray gives itself 30 s to start, too little on a busy machine
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if "timed out during startup" not in run.stderr:
            break
    assert "job 0 was given up: 3 workers died" in run.stdout, run.stderr
    assert "their machine ran out of memory; start fewer workers" in run.stdout
