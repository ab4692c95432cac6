"""Several threads write what one worker makes; no more results wait than there are threads."""

from threading import Barrier, Lock
from typing import Any

import pytest

from attention_atlas.engine.job import Job
from attention_atlas.engine.local import Local
from attention_atlas.names.errors import StoreError


def made(asked: Any) -> int:
    """The work of the jobs below."""
    number: int = asked["number"]
    return number


def jobs(count: int) -> list[Job]:
    return [Job(str(n), f"{__name__}:made", {"number": n}) for n in range(count)]


@pytest.mark.parametrize("writers", [1, 3])
def test_every_result_is_written_once(writers: int) -> None:
    written: list[int] = []
    lock = Lock()

    def done(job: Job, result: int) -> None:
        with lock:
            written.append(result)

    Local(writers=writers).run(jobs(20), done)
    assert sorted(written) == list(range(20))


def test_as_many_write_at_once_as_there_are_writers() -> None:
    together = Barrier(3, timeout=30)  # passes only if three threads reach it

    def done(job: Job, result: int) -> None:
        together.wait()

    Local(writers=3).run(jobs(9), done)


@pytest.mark.parametrize("writers", [1, 3])
def test_no_more_results_wait_than_there_are_writers(writers: int) -> None:
    lock, waiting, most = Lock(), set[str](), [0]

    def handed_out() -> Any:
        for job in jobs(20):
            with lock:  # all that was handed out before is written or waits
                most[0] = max(most[0], len(waiting))
                waiting.add(job.name)
            yield job

    def done(job: Job, result: int) -> None:
        with lock:
            waiting.discard(job.name)

    Local(writers=writers).run(handed_out(), done)
    assert most[0] <= writers and not waiting


@pytest.mark.parametrize("writers", [1, 3])
def test_what_cannot_be_written_ends_the_run(writers: int) -> None:
    def done(job: Job, result: int) -> None:
        if result == 4:
            raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        Local(writers=writers).run(jobs(20), done)
