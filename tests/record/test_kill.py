"""A capture that is killed at any moment goes on to the very same atlas."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import attention_atlas as aa
from attention_atlas.names.errors import StoreError

SENTENCES = [
    f"Sentence {n} tells of {'very ' * (n % 7)}old men and {n * 3} sheep." for n in range(60)
]
# A small shard, so that there is a lot to be killed in the middle of.
SHARD_BYTES = 200_000


def capture_code(folder: Path, corpus: Path) -> str:
    return (
        "import attention_atlas as aa\n"
        f"aa.capture('builtin:gpt', {str(corpus)!r}, path={str(folder)!r}, batch_size=4,"
        f" shard_bytes={SHARD_BYTES}, progress=False)"
    )


def start(folder: Path, corpus: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", capture_code(folder, corpus)], stderr=subprocess.DEVNULL
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def wait_until(condition: object, process: subprocess.Popen[bytes]) -> None:
    assert callable(condition)
    for _ in range(60_000):
        if condition() or process.poll() is not None:
            return
        time.sleep(0.001)
    pytest.fail("the capture never got that far")


def test_killed_and_resumed_is_byte_for_byte_what_was_never_disturbed(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES))
    calm, killed = tmp_path / "calm.atlas", tmp_path / "killed.atlas"
    assert start(calm, corpus).wait() == 0
    shards = len(json.loads((calm / "atlas.json").read_text())["shards"])
    assert shards >= 8

    dice = random.Random(7)
    kills = 0
    # Each round lets some more shards come into being, then kills within the writing of the next.
    for target in sorted(dice.sample(range(shards), 4)):
        process = start(killed, corpus)
        wait_until((killed / "vectors" / f"{target:05d}.safetensors").exists, process)
        time.sleep(dice.random() * 0.05)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
        if not (killed / "atlas.json").exists():
            with pytest.raises(StoreError, match="is not finished"):
                aa.open(killed)
    assert kills >= 2
    assert start(killed, corpus).wait() == 0
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


def test_a_half_begun_folder_is_not_gone_on_with_for_other_inputs(tmp_path: Path) -> None:
    folder, corpus = tmp_path / "x.atlas", tmp_path / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES))
    process = start(folder, corpus)
    wait_until((folder / "parts" / "00001.json").exists, process)
    process.kill()
    process.wait()
    before = contents(folder)
    with pytest.raises(StoreError, match="begun with another model, other inputs"):
        aa.capture("builtin:gpt", SENTENCES[:3], path=folder, progress=False)
    assert contents(folder) == before


def test_ctrl_c_leaves_a_folder_that_resumes(tmp_path: Path) -> None:
    folder, corpus = tmp_path / "x.atlas", tmp_path / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES * 8))
    command = [sys.executable, "-m", "attention_atlas", "capture", "builtin:gpt", str(corpus)]
    process = subprocess.Popen(
        [*command, "-o", str(folder)], stderr=subprocess.PIPE, text=True,
        # Whoever runs these tests in the background has Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    for _ in range(600):
        if (folder / "capture.json").exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again" in talk and "Traceback" not in talk
    done = subprocess.run([*command, "-o", str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(folder)
    assert len(aa.open(folder)) == len(SENTENCES) * 8
