"""What cannot run elsewhere is refused with a sentence, before anything is started."""

import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import attention_atlas as aa
from attention_atlas.cli.app import app
from attention_atlas.engine.cluster import Cluster
from attention_atlas.engine.connect import connect
from attention_atlas.engine.engines import find_engine
from attention_atlas.engine.local import Local
from attention_atlas.engine.options import EngineOptions
from attention_atlas.engine.ray_worker import RayWorker, library_versions
from attention_atlas.layout.run import run_chunk
from attention_atlas.measure.shard_jobs import run_measuring
from attention_atlas.models.load import load
from attention_atlas.names.errors import AtlasError, InputError, ModelError, StoreError
from attention_atlas.record.write.shard_job import load_elsewhere
from tests.engine.jobs import jobs


@pytest.fixture
def ray_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library ray that is not connected, and must not be asked to."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False))


def test_without_the_library_the_sentence_tells_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AtlasError, match=r"run: pip install attention-atlas\[ray\]"):
        Cluster().run(jobs("made", 1), lambda job, result: None)


@pytest.mark.usefixtures("ray_at_rest")
def test_an_address_where_nothing_answers_is_named_at_once() -> None:
    with socket.socket() as taken:  # bound, not listening: the port is closed to everybody
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(AtlasError, match=f"no Ray cluster answers at {address} .*ray start"):
            connect(address)


@pytest.mark.usefixtures("ray_at_rest")
@pytest.mark.parametrize("address", ["host", "host:port", "host:99999", "http://host:1/x"])
def test_what_is_not_an_address_is_named(address: str) -> None:
    with pytest.raises(InputError, match="is not the address of a Ray cluster; give auto"):
        connect(address)


def test_a_live_model_is_not_sent() -> None:
    loaded = load("builtin:gpt", device="cpu")
    with pytest.raises(ModelError, match=r"given as an object cannot be sent .* give its hub id"):
        aa.capture((loaded.model, loaded.processor), "A cat.", engine=Cluster(), progress=False)


def test_inputs_that_are_arrays_are_not_sent() -> None:
    inputs: list[Any] = ["A cat.", {"input_ids": np.arange(1, 5)[None]}]
    with pytest.raises(InputError, match=r"input 1 has arrays .* give texts and names of files"):
        aa.capture("builtin:gpt", inputs, engine="ray", progress=False)


def test_a_model_that_lies_on_the_disk_of_the_caller_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"gone is not on {socket.gethostname()}, where a worker"):
        load_elsewhere({"model": str(tmp_path / "gone")})


@pytest.mark.parametrize("work", [run_chunk, run_measuring])
def test_an_atlas_that_lies_on_the_disk_of_the_caller_is_named(work: Any, tmp_path: Path) -> None:
    asked = {"held": "no such key", "atlas": str(tmp_path / "x.atlas"), "shard": 0, "chunk": {}}
    with pytest.raises(StoreError, match=r"x\.atlas is not on .* folder that all machines reach"):
        work(asked)


def test_a_worker_with_another_version_refuses_to_work() -> None:
    worker = RayWorker({**library_versions(), "torch": "1.0"})
    header, buffers = worker.run("{}", None)
    assert "torch" in header and "instead of 1.0; install the same versions" in header
    assert not buffers


def test_options_of_ray_are_not_taken_by_local() -> None:
    with pytest.raises(InputError, match="address auto is for the engine ray; add --engine ray"):
        find_engine(EngineOptions(address="auto"))


@pytest.mark.parametrize("wrong", [3, None, Cluster])
def test_what_is_no_engine_is_named(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"the engine is a .*; give local or ray, or an engine"):
        find_engine(wrong)


def test_options_reach_the_engine() -> None:
    asked = EngineOptions("ray", "head:6379", 8, "/nfs/tmp")
    assert find_engine(asked) == Cluster("head:6379", 8, "/nfs/tmp")
    local = find_engine(EngineOptions(workers=3))
    assert isinstance(local, Local) and local.workers == 3 and local.apart
    assert find_engine(local) is local


@pytest.mark.parametrize("command", ["build", "capture", "measure", "layout"])
def test_every_command_that_runs_jobs_offers_the_engine(command: str) -> None:
    told = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    assert all(name in told for name in ("--engine", "--address", "--workers", "--shared"))
