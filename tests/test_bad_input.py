"""Bad input gives one clear sentence and exit code 2, and nothing that was whole is lost."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from transformers import BertConfig

import attention_atlas as aa
from attention_atlas.cli import app as cli
from attention_atlas.record.prove import layer_errors as finding
from attention_atlas.store import files
from attention_atlas.store.write import Writer

Captured = pytest.CaptureFixture[str]


def run(*arguments: str) -> int:
    """The command line in this process; gives the exit code."""
    before, sys.argv = sys.argv, ["attention-atlas", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = before
    return 0


def sentence(captured: Captured) -> str:
    """The one line that was said, ours alone."""
    out, err = captured.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("attention-atlas: ")
    return lines[0]


def capture(source: object, tmp_path: Path, *more: str, model: str = "builtin:gpt") -> int:
    return run("capture", model, str(source), "-o", str(tmp_path / "new.atlas"), *more)


def test_empty_text(tmp_path: Path, capsys: Captured) -> None:
    assert capture("  ", tmp_path) == 2
    assert "empty" in sentence(capsys)
    assert not (tmp_path / "new.atlas").exists()


def test_empty_file(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "nothing.txt").write_text("\n\n")
    assert capture(tmp_path / "nothing.txt", tmp_path) == 2
    assert "nothing.txt" in sentence(capsys)


def test_a_file_of_the_wrong_kind(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7")
    assert capture(tmp_path / "paper.pdf", tmp_path) == 2
    assert ".pdf" in sentence(capsys)


def test_a_parquet_file_that_is_none(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "table.parquet").write_text("no table")
    assert capture(tmp_path / "table.parquet", tmp_path) == 2
    assert "table.parquet" in sentence(capsys)


def test_a_missing_column_names_those_there_are(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "corpus.csv").write_text("text,year\nA cat.,1900\n")
    assert capture(tmp_path / "corpus.csv", tmp_path, "--column", "body") == 2
    said = sentence(capsys)
    assert "body" in said and "year" in said


def test_an_input_longer_than_the_model_takes(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "corpus.txt").write_text("Short.\n" + "word " * 400 + "\nShort again.\n")
    assert capture(tmp_path / "corpus.txt", tmp_path) == 2
    said = sentence(capsys)
    assert "input 1" in said and "256" in said and "truncate" in said
    assert capture(tmp_path / "corpus.txt", tmp_path, "--truncate") == 0
    atlas = aa.open(tmp_path / "new.atlas")
    assert atlas.inputs()["truncated"].tolist() == [False, True, False]
    assert len(atlas.tokens(1)) == 256


def test_an_image_that_is_not_one(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "bad.png").write_text("not a picture")
    assert capture(tmp_path / "bad.png", tmp_path, model="builtin:vit") == 2
    assert "bad.png" in sentence(capsys)


def test_a_text_model_given_images(tmp_path: Path, capsys: Captured) -> None:
    Image.new("RGB", (64, 64)).save(tmp_path / "good.png")
    assert capture(tmp_path / "good.png", tmp_path) == 2
    assert sentence(capsys)


def test_a_model_folder_with_no_weights(tmp_path: Path, capsys: Captured) -> None:
    BertConfig().save_pretrained(tmp_path / "model")
    assert capture("A cat.", tmp_path, model=str(tmp_path / "model")) == 2
    assert "weights" in sentence(capsys)


def test_a_built_in_model_that_does_not_exist(tmp_path: Path, capsys: Captured) -> None:
    assert capture("A cat.", tmp_path, model="builtin:gpt9") == 2
    assert "builtin:gpt" in sentence(capsys)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("file", ["vectors/00001.safetensors", "parts/00001.tokens.parquet"])
def test_a_full_disk_loses_nothing_and_the_same_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    folder = tmp_path / "new.atlas"
    texts = ["A cat sat on the mat.", "A dog ran.", "Two birds flew."]

    def go() -> aa.Atlas:
        return aa.capture("builtin:gpt", texts, path=folder, shard_bytes=1, progress=False)

    add = Writer.add

    def add_to_a_full_disk(self: Writer, *given: Any) -> None:
        if len(self.parts) == 1:  # what is written beside its final name lands on a full device
            (folder / f"{file}.part").symlink_to("/dev/full")
        add(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "add", add_to_a_full_disk)
        with pytest.raises(aa.StoreError, match="the disk is full"):
            go()
    first = folder / "vectors" / "00000.safetensors"
    before = first.stat().st_mtime_ns
    assert len(go()) == 3
    assert first.stat().st_mtime_ns == before  # it was not made again


def test_a_damaged_shard(tmp_path: Path) -> None:
    atlas = aa.capture("builtin:gpt", "A cat sat.", path=tmp_path / "x.atlas", progress=False)
    shard = atlas.path / atlas.manifest.shards[0].file
    data = bytearray(shard.read_bytes())
    data[-100] ^= 1
    shard.write_bytes(data)
    with pytest.raises(aa.StoreError, match="damaged"):
        aa.open(atlas.path).weights(0, "L0H0")


def test_a_cut_off_shard(tmp_path: Path) -> None:
    atlas = aa.capture("builtin:gpt", "A cat sat.", path=tmp_path / "x.atlas", progress=False)
    shard = atlas.path / atlas.manifest.shards[0].file
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.raises(aa.StoreError, match="damaged"):
        aa.open(atlas.path).weights(0, "L0H0")


def test_a_damaged_table(tmp_path: Path) -> None:
    atlas = aa.capture("builtin:gpt", "A cat sat.", path=tmp_path / "x.atlas", progress=False)
    (atlas.path / "tokens.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(aa.StoreError, match=r"tokens\.parquet"):
        aa.open(atlas.path).tokens()


def test_a_manifest_from_a_newer_version(tmp_path: Path) -> None:
    atlas = aa.capture("builtin:gpt", "A cat sat.", path=tmp_path / "x.atlas", progress=False)
    manifest = atlas.path / "atlas.json"
    files.write_json(manifest, {**files.read_json(manifest), "format": 99})
    with pytest.raises(aa.StoreError, match="format 99 and this version reads up to 2"):
        aa.open(atlas.path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', "{"])
def test_a_manifest_that_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.atlas").mkdir()
    (tmp_path / "x.atlas" / "atlas.json").write_text(text)
    with pytest.raises(aa.StoreError):
        aa.open(tmp_path / "x.atlas")


def test_a_whole_atlas_is_never_overwritten_unasked(tmp_path: Path, capsys: Captured) -> None:
    assert capture("A cat sat.", tmp_path) == 0
    before = (tmp_path / "new.atlas" / "atlas.json").read_bytes()
    capsys.readouterr()
    assert capture("A dog ran.", tmp_path) == 2
    assert "--overwrite" in sentence(capsys)
    assert (tmp_path / "new.atlas" / "atlas.json").read_bytes() == before
    assert capture("A dog ran.", tmp_path, "--overwrite") == 0
    assert aa.open(tmp_path / "new.atlas").inputs()["text"][0] == "A dog ran."


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "new.atlas").mkdir()
    (tmp_path / "new.atlas" / "thesis.tex").write_text("years of work")
    assert capture("A cat sat.", tmp_path, "--overwrite") == 2
    assert "not an atlas" in sentence(capsys)
    assert (tmp_path / "new.atlas" / "thesis.tex").read_text() == "years of work"


def test_check_exits_0_only_when_exact(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    assert run("check", "builtin:bert") == 0
    out, _ = capsys.readouterr()
    assert "encoder 5" in out and "exact (way: named" in out
    monkeypatch.setattr(finding, "BOUND", -1.0)  # which nothing can meet
    assert run("check", "builtin:bert") == 1
    out, _ = capsys.readouterr()
    assert "NOT EXACT: recomputed weights are off by" in out
    assert out.splitlines()[-1] == "not exact"


def test_check_as_json_is_json(capsys: Captured) -> None:
    assert run("check", "builtin:gpt", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exact"] is True and len(told["layers"]) == 6
