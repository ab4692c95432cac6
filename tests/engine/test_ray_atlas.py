"""An atlas made by a Ray cluster, one of whose workers is killed, is that of this machine."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import attention_atlas as aa
from attention_atlas.engine.cluster import Cluster
from attention_atlas.engine.job import Done, Engine, Job
from attention_atlas.engine.local import Local
from attention_atlas.layout.plan import Options
from attention_atlas.layout.run import layout_atlas
from tests.made_once import MadeOnce

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("ray")]

TEXTS = [f"Sentence {n} tells of {'very ' * (n % 5)}old men and {n} sheep." for n in range(30)]
SHARD_BYTES = 100_000


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A worker takes as many cores as the caller has threads; two workers share two cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def capture(folder: Path, engine: str | Engine, **options: Any) -> aa.Atlas:
    return aa.capture(
        "builtin:gpt", TEXTS, path=folder, batch_size=4, shard_bytes=SHARD_BYTES, engine=engine,
        progress=False, **options,
    )  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def whole(folder: Path, engine: str | Engine) -> aa.Atlas:
    """Capture, lay out and measure."""
    atlas = capture(folder, engine)
    atlas.layout("umap", tokens=40, device="cpu", progress=False, engine=engine)
    atlas.measure(progress=False, engine=engine)
    return atlas


@pytest.fixture(scope="module")
def calm(made_once: MadeOnce) -> Path:
    """The atlas as this machine makes it, with maps and scores."""
    torch.set_num_threads(1)
    folder = made_once("calm-of-ray", lambda path: whole(path / "x.atlas", "local")) / "x.atlas"
    assert len(aa.open(folder).manifest.shards) >= 6
    return folder


def workers() -> list[psutil.Process]:
    """The processes of our cluster in which jobs run now."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "".join(process.cmdline()[:1]).startswith("ray::RayWorker.run"):
                found.append(process)
    return found


@contextmanager
def one_killed(after: Callable[[], bool]) -> Iterator[list[int]]:
    """Kill one worker as soon as `after` holds; yield the list that it is then in."""
    killed: list[int] = []
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(0.002):
            running = workers() if after() else []
            if running:
                killed.append(running[0].pid)
                running[0].kill()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        finished.set()
        thread.join()


def some(folder: Path, pattern: str) -> Callable[[], bool]:
    return lambda: any(folder.glob(pattern))


def test_capture_layout_and_measure_with_a_killed_worker_each_are_the_same_bytes(
    calm: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "x.atlas"
    engine = Cluster(workers=2)
    with one_killed(some(folder, "parts/*.json")) as first:
        atlas = capture(folder, engine)
    with one_killed(some(folder, "layouts/*.parts/*.json")) as second:
        layout_atlas(atlas, Options("umap", tokens=40), progress=False, engine=engine)
    with one_killed(some(folder, "scores*.parts/*.json")) as third:
        atlas.measure(progress=False, engine=engine)
    # Each was killed while its workers had jobs, after the first result and before the last.
    assert [len(killed) for killed in (first, second, third)] == [1, 1, 1]
    assert contents(folder) == contents(calm)


@pytest.mark.parametrize("scheme", ["", "file://"], ids=["folder", "URL"])
def test_vectors_by_a_shared_folder_are_the_same_bytes(
    scheme: str, calm: Path, tmp_path: Path
) -> None:
    engine = Cluster(workers=2, shared=f"{scheme}{tmp_path / 'shared'}")
    capture(tmp_path / "x.atlas", engine)
    got, expected = contents(tmp_path / "x.atlas"), contents(calm)
    assert {name: expected[name] for name in got} == got and "atlas.json" in got
    assert list((tmp_path / "shared").iterdir()) == []


@dataclass(frozen=True)
class Stopping:
    """An engine whose caller is interrupted after some results."""

    engine: Engine
    after: int

    @property
    def apart(self) -> bool:
        return self.engine.apart

    def run(self, jobs: Iterable[Job], done: Done) -> None:
        count = 0

        def some(job: Job, result: Any) -> None:
            nonlocal count
            if count == self.after:
                raise KeyboardInterrupt
            count += 1
            done(job, result)

        self.engine.run(jobs, some)


@pytest.mark.parametrize(
    ("begins", "resumes"),
    [(Cluster(workers=2), Local()), (Local(), Cluster(workers=2))],
    ids=["begun by ray", "begun by local"],
)
def test_one_engine_resumes_what_another_has_begun(
    begins: Engine, resumes: Engine, calm: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "x.atlas"
    with pytest.raises(KeyboardInterrupt):
        capture(folder, Stopping(begins, 2))
    assert len(list((folder / "parts").glob("*.json"))) == 2
    atlas = capture(folder, resumes)
    with pytest.raises(KeyboardInterrupt):
        layout_atlas(atlas, Options("umap", tokens=40), progress=False, engine=Stopping(begins, 1))
    layout_atlas(atlas, Options("umap", tokens=40), progress=False, engine=resumes)
    with pytest.raises(KeyboardInterrupt):
        atlas.measure(progress=False, engine=Stopping(begins, 2))
    atlas.measure(progress=False, engine=resumes)
    assert contents(folder) == contents(calm)


def test_scores_measured_while_capturing_are_the_same(tmp_path: Path) -> None:
    for name, engine in (("local", "local"), ("ray", Cluster(workers=2))):
        capture(tmp_path / name, engine, vectors="sample:50")
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    assert "scores.parquet" in contents(tmp_path / "ray")


def test_the_command_builds_on_a_cluster_and_resumes_after_ctrl_c(
    ray: Any, calm: Path, tmp_path: Path
) -> None:
    folder, corpus = tmp_path / "x.atlas", tmp_path / "corpus.txt"
    corpus.write_text("\n".join(TEXTS * 6))
    address = ray.get_runtime_context().gcs_address
    words = ["build", "builtin:gpt", str(corpus), "-o", str(folder), "--method", "pca"]
    command = [
        sys.executable, "-m", "attention_atlas", *words, "--engine", "ray", "--address", address,
        "--workers", "2",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    end = time.monotonic() + 120
    while not workers():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130, talk
    assert "run the same command again" in talk and "Traceback" not in talk
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(folder)
    atlas = aa.open(folder)
    assert len(atlas) == len(TEXTS) * 6 and atlas.scores() is not None
    assert (folder / "layouts" / "pca-2d.safetensors").exists()
