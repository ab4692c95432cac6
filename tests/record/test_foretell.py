"""A capture says what it will take, and refuses before the work what the disk cannot hold."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import attention_atlas as aa
from attention_atlas.names.errors import StoreError
from attention_atlas.record.write.foretell import Forecast, duration, size
from attention_atlas.store.write import Writer

TEXTS = [f"The old farmer found letter {number} in the garden." for number in range(12)]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def with_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - free, free))


def written(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "vectors").iterdir())


def test_a_disk_that_is_too_small_is_known_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_free(monkeypatch, 950_000)
    with pytest.raises(StoreError, match=r"12 inputs need about .* MB .*950 kB free.*sample:20000"):
        aa.capture("builtin:gpt", TEXTS, path=tmp_path / "x.atlas", progress=False)
    assert not (tmp_path / "x.atlas").exists()
    sample = aa.capture(
        "builtin:gpt", TEXTS, path=tmp_path / "x.atlas", vectors="none", progress=False
    )
    assert len(sample) == len(TEXTS)


@pytest.mark.parametrize("options", [{}, {"keep": ("query", "key")}, {"vectors": "sample:40"}])
def test_what_is_foretold_is_what_is_written(
    options: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aa.capture("builtin:gpt", TEXTS, path=tmp_path / "x.atlas", **options)
    said = capsys.readouterr().err
    assert said.startswith("capturing 12 inputs: about ") and " of vectors" in said
    number, unit = said.removeprefix("capturing 12 inputs: about ").split()[:2]
    foretold = float(number) * {"kB": 1e3, "MB": 1e6}[unit]
    header = 8192 + 20_000  # names and places of the tensors; blocks and masks
    assert foretold * 0.95 <= written(tmp_path / "x.atlas") <= foretold * 1.05 + header


def test_a_capture_that_resumes_needs_room_for_the_rest_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x.atlas"
    options: Any = {"path": folder, "shard_bytes": 50_000, "progress": False}
    atlas = aa.capture("builtin:gpt", TEXTS, **options)
    need = written(folder) + (folder / "output.safetensors").stat().st_size
    assert len(atlas.manifest.shards) > 2
    shutil.rmtree(folder)
    add = Writer.add

    def stop_after_two(self: Writer, number: int, contents: Any) -> None:
        add(self, number, contents)
        if len(self.parts) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "add", stop_after_two)
        with pytest.raises(KeyboardInterrupt):
            aa.capture("builtin:gpt", TEXTS, **options)
    with_free(monkeypatch, need - written(folder) // 2)
    assert len(aa.capture("builtin:gpt", TEXTS, **options)) == len(TEXTS)


def test_a_large_corpus_is_timed_and_a_huge_one_offered_a_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aa.capture("builtin:gpt", TEXTS * 6, path=tmp_path / "x.atlas", batch_size=1)
    assert "seconds" in capsys.readouterr().err
    assert "sample:20000" in str(Forecast(10**6, 60 * 10**9, 1e6))
    assert "sample:20000" not in str(Forecast(10**6, 40 * 10**9, None))


def test_sizes_and_times_are_said_in_words() -> None:
    sizes = (40, 70_000, 3.5e9, 128e6, 1.6e15, 2e18)
    assert [size(count) for count in sizes] == [
        "40 bytes", "70 kB", "3.5 GB", "128 MB", "1.6 PB", "2,000 PB",
    ]  # fmt: skip
    times = (0.2, 90, 600, 7300, 400_000)
    assert [duration(seconds) for seconds in times] == [
        "1 seconds", "90 seconds", "10 minutes", "2 hours", "5 days",
    ]  # fmt: skip
