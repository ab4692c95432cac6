"""How do jobs run on the machines of a Ray cluster?

Each worker is an actor that runs one job at a time and keeps its model between jobs. A worker that
dies is replaced, and its job runs again. Only this process writes: results come by value, or as
files in a folder that all machines reach.
"""

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from attention_atlas.engine.connect import connect
from attention_atlas.engine.job import Done, Job
from attention_atlas.engine.parcel import Parcel, unpack
from attention_atlas.engine.ray_worker import RayWorker, library_versions
from attention_atlas.names.errors import AtlasError
from attention_atlas.store.arrived import check_shared, forget

MOST_DEATHS = 3  # workers that one job may end before it is given up
_LOOK = 1.0  # seconds between two looks at the cluster
_TELL = 30.0  # seconds without any worker before a line says so
_PATIENCE = 600.0  # seconds to wait for machines that the cluster does not have


@dataclass(frozen=True)
class Cluster:
    """The engine that uses a Ray cluster: one that runs, or a new one on this machine."""

    address: str | None = None
    workers: int | None = None  # None: as many as the cluster has room for
    shared: str | None = None  # folder or URL for large results; None: they are sent
    apart = True

    def run(self, jobs: Iterable[Job], done: Done) -> None:
        """Run all jobs in any order; pass each result to `done`, one at a time."""
        waiting = iter(jobs)
        first = next(waiting, None)
        if first is None:
            return
        ray, started_here = connect(self.address)
        shared = None
        if self.shared is not None:
            check_shared(self.shared)
            shared = f"{self.shared.rstrip('/')}/attention-atlas-{uuid4().hex[:12]}"
        crew = Crew(ray, first, self.workers, shared)
        crew.room.patience = 0 if started_here else _PATIENCE
        try:
            crew.run(_chained(first, waiting), done)
        finally:
            crew.dismiss()
            if shared is not None:
                forget(shared)


def _chained(first: Job, others: Iterable[Job]) -> Iterable[Job]:
    yield first
    yield from others


class Crew:
    """The workers of one run, and the jobs that they have."""

    def __init__(self, ray: Any, like: Job, limit: int | None, shared: str | None):
        self.ray, self.limit, self.shared = ray, limit, shared
        self.need = {"CPU": like.cpus, "GPU": like.gpus}
        self.actor = ray.remote(RayWorker).options(num_cpus=like.cpus, num_gpus=like.gpus)
        self.busy: dict[Any, tuple[Any, Job]] = {}  # by the promise of a result
        self.again: deque[Job] = deque()  # whose worker died
        self.deaths: Counter[str] = Counter()
        self.room = Room(ray, self.need)
        self.lost = _lost_kinds(ray)

    def run(self, jobs: Iterable[Job], done: Done) -> None:
        """Run all jobs; workers are hired as the cluster has room for them."""
        self.jobs = iter(jobs)
        self._hire()
        while self.busy:
            ready, _ = self.ray.wait(list(self.busy), num_returns=1, timeout=_LOOK)
            if not ready:
                self.room.check()
            for promise in ready:
                self._finish(promise, done)
            self._hire()

    def dismiss(self) -> None:
        """End all workers."""
        for worker, _ in self.busy.values():
            self.ray.kill(worker)
        self.busy.clear()

    def _finish(self, promise: Any, done: Done) -> None:
        worker, job = self.busy.pop(promise)
        try:
            header, buffers = self.ray.get(promise)
        except self.lost as problem:
            self._run_again(job, problem)
            return
        except self.ray.exceptions.RayError as problem:
            raise AtlasError(
                f"job {job.name} failed on the cluster: {_last_line(problem)}"
            ) from None
        self.room.works()
        following = self._next()
        if following is None:
            self.ray.kill(worker)
        else:
            self._give(worker, following)
        done(job, unpack(Parcel(header, tuple(buffers))))

    def _hire(self) -> None:
        """Start workers while there is room in the cluster, and work for them."""
        wanted = self.limit or max(1, self.room.workers())
        while len(self.busy) < wanted:
            job = self._next()
            if job is None:
                return
            self._give(self.actor.remote(library_versions()), job)

    def _give(self, worker: Any, job: Job) -> None:
        self.busy[worker.run.remote(json.dumps(asdict(job)), self.shared)] = worker, job

    def _next(self) -> Job | None:
        return self.again.popleft() if self.again else next(self.jobs, None)

    def _run_again(self, job: Job, problem: BaseException) -> None:
        self.deaths[job.name] += 1
        if self.deaths[job.name] < MOST_DEATHS:
            self.again.append(job)
            return
        raise AtlasError(
            f"job {job.name} was given up: {MOST_DEATHS} workers died while they ran it "
            f"({_reason(problem)}); what is done is kept, and the same command resumes"
        )


class Room:
    """How many workers fit into the cluster, and for how long there was none."""

    def __init__(self, ray: Any, need: dict[str, int]):
        self.ray, self.need = ray, {name: count for name, count in need.items() if count}
        self.looked, self.fit = -1e9, 0
        self.since = self.told = time.monotonic()
        self.working, self.patience = False, _PATIENCE

    def workers(self) -> int:
        """Count the workers that all machines together have room for."""
        if time.monotonic() - self.looked > 10 * _LOOK:
            self.looked = time.monotonic()
            nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
            self.fit = sum(
                min(int(node.get(name, 0) // count) for name, count in self.need.items())
                for node in nodes
            )
        return self.fit

    def works(self) -> None:
        """Note that a worker has answered."""
        self.working = True

    def check(self) -> None:
        """Tell that no worker has started for a while; give up where there cannot be one."""
        if self.working:
            return
        now = time.monotonic()
        needs = " and ".join(f"{count} {name}" for name, count in self.need.items())
        has = self.ray.cluster_resources()
        told = ", ".join(f"{has.get(name, 0):.0f} {name}" for name in self.need)
        if not self.workers() and now - self.since > self.patience:
            raise AtlasError(
                f"no machine of the cluster has {needs}, which each worker needs (all together "
                f"have {told}); add such a machine, or choose another device"
            )
        if now - self.told > _TELL and (not self.workers() or now - self.since > 4 * _TELL):
            self.told = now
            line = f"waiting for a machine with {needs} free; the cluster has {told} in all"
            print(line, file=sys.stderr)


def _lost_kinds(ray: Any) -> tuple[type[BaseException], ...]:
    """Return the errors that mean: the worker, its machine or its result is gone."""
    errors = ray.exceptions
    return (
        errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError,
        errors.OutOfMemoryError, errors.ObjectLostError, errors.LocalRayletDiedError,
    )  # fmt: skip


def _reason(problem: BaseException) -> str:
    text = str(problem)
    if "No module named" in text:
        return "attention-atlas is not installed on their machine; install the same version there"
    if type(problem).__name__ == "OutOfMemoryError" or "low on memory" in text:
        return (
            "their machine ran out of memory; start fewer workers or run smaller batches "
            "(--workers, --batch-size)"
        )
    return "they crashed or were killed, for lack of memory perhaps; try fewer --workers"


def _last_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[-1][:300]
