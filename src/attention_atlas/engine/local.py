"""How do jobs run on this machine?

One worker runs in this process; other threads write, so that the model need not wait for the disk.
No more results wait than there are such threads, so memory stays bounded. Several workers are
processes, each with its own Python; a free worker takes the next job.
(`multiprocessing` would run the user's script again in each process.)
"""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from queue import Empty, SimpleQueue
from threading import Lock

from attention_atlas.engine.job import Done, Job
from attention_atlas.engine.parcel import receive, unpack
from attention_atlas.names.errors import AtlasError

_STOPPED = "a worker process was stopped; run the same command again to resume"


@dataclass(frozen=True)
class Local:
    """The engine that uses this machine alone."""

    workers: int | None = None  # None: one, or as many as suit the work
    writers: int = 1  # threads that call `done` at the same time, with one worker

    @property
    def apart(self) -> bool:
        """Tell whether jobs run in other processes."""
        return self.workers is not None and self.workers > 1

    def run(self, jobs: Iterable[Job], done: Done) -> None:
        """Run all jobs in any order; pass each result to `done`."""
        if self.workers is None or self.workers == 1:
            _run_here(jobs, done, self.writers)
        else:
            _run_apart(jobs, done, self.workers)


def _run_here(jobs: Iterable[Job], done: Done, writers: int) -> None:
    with ThreadPoolExecutor(writers) as threads:
        waiting: deque[Future[None]] = deque()
        for job in jobs:
            result = job.run()
            while len(waiting) >= writers or (waiting and waiting[0].done()):
                problem = waiting.popleft().exception()
                if problem is None:
                    continue
                if not isinstance(problem, AtlasError):  # stopped, not unable to write
                    with suppress(Exception):
                        done(job, result)  # so what is computed is kept
                raise problem
            waiting.append(threads.submit(done, job, result))
            del result  # it may be large; the writer frees it once it is written
        for written in waiting:
            written.result()


def _run_apart(jobs: Iterable[Job], done: Done, workers: int) -> None:
    waiting: SimpleQueue[Job] = SimpleQueue()
    for job in jobs:
        waiting.put(job)
    one_at_a_time = Lock()

    def serve(process: "subprocess.Popen[bytes]") -> None:
        try:
            while True:
                job = waiting.get_nowait()
                result = _ask(process, job)
                with one_at_a_time:
                    done(job, result)
        except Empty:
            return
        except BaseException:
            with suppress(Empty):  # no more jobs; the other workers finish their current ones
                while True:
                    waiting.get_nowait()
            raise

    count = min(workers, max(1, waiting.qsize()))
    with _processes(count) as running, ThreadPoolExecutor(count) as threads:
        futures = [threads.submit(serve, process) for process in running]
        try:
            for future in futures:
                future.result()
        finally:
            for process in running:
                process.terminate()


def _ask(process: "subprocess.Popen[bytes]", job: Job) -> object:
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
        process.stdin.flush()
        parcel = receive(process.stdout)
    except (EOFError, BrokenPipeError) as ended:
        raise AtlasError(_STOPPED) from ended
    return unpack(parcel)


@contextmanager
def _processes(count: int) -> "Iterator[list[subprocess.Popen[bytes]]]":
    command = [sys.executable, "-m", "attention_atlas.engine.worker"]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        for _ in range(count)
    ]
    try:
        yield running
    finally:
        for process in running:
            process.terminate()
            process.communicate()
