"""A capture that is killed at any moment goes on to the very same atlas."""

import json
import multiprocessing
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

import attention_atlas as aa
from attention_atlas.names.errors import StoreError

SENTENCES = [
    f"Sentence {n} tells of {'very ' * (n % 7)}old men and {n * 3} sheep." for n in range(60)
]
# A small shard, so that there is a lot to be killed in the middle of.
SHARD_BYTES = 200_000


# The server imports torch once; each capture is a fork of it and a process of its own.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "transformers.models.gpt2.modeling_gpt2"])


def capture(folder: Path, corpus: Path) -> None:
    aa.capture(
        "builtin:gpt", corpus, path=folder, batch_size=4, shard_bytes=SHARD_BYTES, progress=False
    )


def start(folder: Path, corpus: Path) -> ForkServerProcess:
    process = PROCESSES.Process(target=capture, args=(folder, corpus))
    process.start()
    return process


def code_of(process: ForkServerProcess) -> int | None:
    process.join()
    return process.exitcode


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def wait_until(condition: Callable[[], bool], process: ForkServerProcess) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if condition() or process.exitcode is not None:
            return
        process.join(0.001)
    pytest.fail("the capture never got that far")


@pytest.mark.full
def test_killed_and_resumed_is_byte_for_byte_what_was_never_disturbed(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES))
    calm, killed = tmp_path / "calm.atlas", tmp_path / "killed.atlas"
    assert code_of(start(calm, corpus)) == 0
    shards = len(json.loads((calm / "atlas.json").read_text())["shards"])
    assert shards >= 8

    dice = random.Random(7)
    kills = 0
    # Each round lets some more shards come into being, then kills within the writing of the next.
    for target in sorted(dice.sample(range(shards), 4)):
        process = start(killed, corpus)
        wait_until((killed / "vectors" / f"{target:05d}.safetensors").exists, process)
        process.join(dice.random() * 0.05)  # somewhere within the next shard
        if process.exitcode is None:
            process.kill()
            kills += 1
        process.join()
        if not (killed / "atlas.json").exists():
            with pytest.raises(StoreError, match="is not finished"):
                aa.open(killed)
    assert kills >= 2
    assert code_of(start(killed, corpus)) == 0
    assert contents(killed) == contents(calm)


def test_a_kill_between_the_manifest_and_the_sweeping_up_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "x.atlas"
    aa.capture("builtin:gpt", SENTENCES[:3], path=folder, progress=False)
    before = contents(folder)
    (folder / "parts").mkdir()
    (folder / "parts" / "00000.json").write_text("{}")
    (folder / "capture.json").write_text('{"fingerprint": "whatever"}')
    assert len(aa.capture("builtin:gpt", SENTENCES[:3], path=folder, progress=False)) == 3
    assert {name: data for name, data in contents(folder).items() if name in before} == before


@pytest.mark.full
def test_a_half_begun_folder_is_not_gone_on_with_for_other_inputs(tmp_path: Path) -> None:
    folder, corpus = tmp_path / "x.atlas", tmp_path / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES))
    process = start(folder, corpus)
    wait_until((folder / "parts" / "00001.json").exists, process)
    process.kill()
    process.join()
    before = {name: data for name, data in contents(folder).items() if not name.endswith(".part")}
    with pytest.raises(StoreError, match="begun with another model, other inputs"):
        aa.capture("builtin:gpt", SENTENCES[:3], path=folder, progress=False)
    assert contents(folder) == before


@pytest.mark.full
def test_ctrl_c_leaves_a_folder_that_resumes(tmp_path: Path) -> None:
    folder, corpus = tmp_path / "x.atlas", tmp_path / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES * 2))
    command = [sys.executable, "-m", "attention_atlas", "capture", "builtin:gpt", str(corpus)]
    process = subprocess.Popen(
        [*command, "-o", str(folder)], stderr=subprocess.PIPE, text=True,
        # Whoever runs these tests in the background has Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (folder / "capture.json").exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again" in talk and "Traceback" not in talk
    done = subprocess.run([*command, "-o", str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(folder)
    assert len(aa.open(folder)) == len(SENTENCES) * 2
