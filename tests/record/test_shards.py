"""Does a shard depend on the plan alone: in any order, with gaps, in another process?"""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.engine import engines
from attention_atlas.engine.job import Done, Job
from attention_atlas.engine.local import Local
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import load
from attention_atlas.record.watch import recorder
from attention_atlas.record.write import planning, rounding, shard
from attention_atlas.record.write.corpus import Corpus
from attention_atlas.record.write.options import Capturing
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.record.write.planning import cut_shards, make_plan
from attention_atlas.store import files

TEXTS = [f"Sentence {n} tells of {'very ' * (n % 5)}old men." for n in range(9)]
SHARD_BYTES = 100_000


def capture(folder: Path, engine: str = "local") -> aa.Atlas:
    return aa.capture(
        "builtin:gpt", TEXTS, path=folder, batch_size=2, shard_bytes=SHARD_BYTES, engine=engine,
        progress=False,
    )  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Backwards:
    """Runs the last job first, and is killed before it comes to the second."""

    apart = False

    def run(self, jobs: Iterable[Job], done: Done) -> None:
        for job in sorted(jobs, key=lambda job: -int(job.name)):
            assert json.loads(json.dumps(job.asked)) == job.asked
            if job.name == "1":
                raise KeyboardInterrupt
            done(job, job.run())


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calm") / "x.atlas"
    assert len(capture(folder).manifest.shards) >= 4
    return folder


def test_shards_in_any_order_and_with_gaps_become_the_same_bytes(
    tmp_path: Path, calm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x.atlas"
    monkeypatch.setitem(engines.ENGINES, "backwards", lambda _: Backwards())
    with pytest.raises(KeyboardInterrupt):
        capture(folder, "backwards")
    there = {path.stem for path in (folder / "parts").glob("*.json")}
    assert "00003" in there and not {"00000", "00001"} & there
    (folder / "parts" / "00003.json").unlink()  # as if it had been killed while writing this one
    capture(folder)
    assert contents(folder) == contents(calm)


@pytest.mark.full
@pytest.mark.parametrize(
    "engine", [Local(workers=2), Local(writers=3)], ids=["other processes", "several writers"]
)
def test_shards_become_the_same_bytes_wherever_they_run_and_are_written(
    engine: Local, tmp_path: Path, calm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engines.ENGINES, "other", lambda _: engine)
    capture(tmp_path / "x.atlas", "other")
    assert contents(tmp_path / "x.atlas") == contents(calm)


def test_calls_that_are_reduced_together_become_the_same_bytes_as_each_alone(
    tmp_path: Path, calm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "TOGETHER", 0)
    capture(tmp_path / "x.atlas")
    assert contents(tmp_path / "x.atlas") == contents(calm)


def test_a_plan_is_json_both_ways() -> None:
    loaded = load("builtin:gpt", device="cpu")
    corpus = Corpus(loaded, dict(enumerate(read_inputs(TEXTS))))
    plan = make_plan(corpus, Capturing(shard_bytes=SHARD_BYTES), {"model": "builtin:gpt"}).plan
    assert CapturePlan.from_json(plan.to_json()) == plan
    firsts, ends = zip(*plan.shards, strict=True)
    assert (firsts[0], ends[-1]) == (0, len(TEXTS)) and firsts[1:] == ends[:-1]
    assert [layer.number for layer in plan.layers] == list(range(6))
    assert all(layer.exact and layer.queries == "text" for layer in plan.layers)


def test_shards_end_where_a_batch_does_and_lose_no_input() -> None:
    four = Capturing(shard_bytes=10, batch_size=4)
    assert cut_shards([1] * 25, four, 10, True) == ((0, 8), (8, 16), (16, 25))
    assert cut_shards([1] * 25, four, 10, False) == ((0, 10), (10, 20), (20, 25))
    # What a shard leaves to the next counts there, and a large input is a shard by itself.
    assert cut_shards([4, 1, 1, 1, 9, 2, 1, 1, 1], four, 10, True) == ((0, 4), (4, 6), (6, 9))
    assert cut_shards([12, 1, 30], four, 10, True) == ((0, 1), (1, 3))


def test_a_capture_that_an_earlier_version_began_keeps_its_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(folder: Path, **options: Any) -> aa.Atlas:
        return aa.capture(
            "builtin:gpt", TEXTS, path=folder, batch_size=2, shard_bytes=2 * SHARD_BYTES,
            progress=False, **options,
        )  # fmt: skip

    def ends(atlas: aa.Atlas) -> list[int]:
        return [shard.inputs for shard in atlas.manifest.shards]

    new = ends(run(tmp_path / "new.atlas"))
    anywhere = partial(planning.cut_shards, at_batches=False)
    monkeypatch.setattr(planning, "cut_shards", lambda *given: anywhere(*given[:3]))
    old, folder = ends(run(tmp_path / "old.atlas")), tmp_path / "begun.atlas"
    monkeypatch.setitem(engines.ENGINES, "backwards", lambda _: Backwards())
    with pytest.raises(KeyboardInterrupt):
        run(folder, engine="backwards")
    monkeypatch.undo()
    assert old != new and all(count % 2 == 0 for count in new[:-1])
    begun = folder / "capture.json"
    said = files.read_json(begun)
    del said["about"]["at_batches"]  # as an earlier version wrote it
    files.write_json(begun, said)
    assert ends(run(folder)) == old
    assert ends(run(folder, overwrite=True)) == new


def test_only_the_shard_that_needs_float32_is_stored_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = rounding.check_batch
    asked: list[int] = []

    def coarse_for_nine_tokens(layers: Any, *more: Any) -> Any:
        checked = real(layers, *more)
        asked.append(layers[0].first.query.shape[2])
        if asked[-1] == 9:
            checked.coarse.add(layers[0].first.module)
        return checked

    monkeypatch.setattr(shard, "check_batch", coarse_for_nine_tokens)
    inputs = [{"input_ids": np.arange(1, 1 + n)[None]} for n in (5, 9, 6)]
    atlas = aa.capture("builtin:gpt", inputs, shard_bytes=1, progress=False)
    kinds = [atlas.shard(number).tensor("decoder.L0.query").dtype for number in range(3)]
    assert kinds == [np.float16, np.float32, np.float16]
    assert asked.count(9) == 2  # the batch ran once more


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(aa.InputError, match="no engine is named 'cloud'; the engines are: local"):
        aa.capture("builtin:gpt", "A cat.", engine="cloud")
