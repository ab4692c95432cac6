"""Odd inputs, folders and machines: one sentence each, and what can be done is done."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import attention_atlas as aa
from attention_atlas.images.probes import write_probes
from attention_atlas.models.inputs import read_inputs
from attention_atlas.names.arguments import fits, words
from attention_atlas.names.head import Head
from attention_atlas.page.answers.heads import head_scores
from attention_atlas.store import files
from tests.planted import planted


def as_any(value: Any) -> Any:
    """The same value, of which the type checker knows nothing."""
    return value


def test_a_csv_with_more_fields_than_its_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    path.write_text("text,year\nA cat sat.,1900,a dog\nA bird flew.,1901,a fox\n")
    with pytest.raises(aa.InputError, match="1 more fields than its header has names"):
        read_inputs(path)
    path.write_text('text,year\n"A cat sat, slept.",1900\n')
    (given,) = read_inputs(path)
    assert given.text == "A cat sat, slept." and given.columns == {"year": 1900}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"text": "A cat.", "n": 123456789012345678901234567890}', "30 digits"),
        ("a.jsonl", '{"text": "A cat.", "n": ' + "9" * 5000 + "}", "not JSON"),
        ("a.jsonl", '{"text": "A \\ud800 cat."}', "half of a character"),
        ("a.jsonl", "[" * 100_000, "not JSON"),
        ("a.txt", "A cat\0sat.", "not a text file"),
    ],
)
def test_texts_that_cannot_be_stored_are_refused(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(aa.InputError, match=said):
        read_inputs(tmp_path / name)


def test_a_pipe_as_input_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(aa.InputError, match="not a plain file"):
        read_inputs(tmp_path / "a.txt")


@pytest.mark.parametrize("name", ["file", "n" * 300])
def test_an_output_that_cannot_be_a_folder_is_refused_before_the_model_is_loaded(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(aa.StoreError, match=r"is a file|cannot be an atlas"):
        aa.capture("no/such-model", "A cat.", path=tmp_path / name)


def test_a_failed_capture_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(aa.InputError, match="generate at most"):
        aa.capture("builtin:gpt", "A cat.", generate=5000, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_what_is_stopped_while_it_is_written_leaves_nothing(tmp_path: Path) -> None:
    def write(part: Path) -> None:
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_whole(tmp_path / "x", write)
    assert list(tmp_path.iterdir()) == []


def test_probes_have_a_bound(tmp_path: Path) -> None:
    with pytest.raises(aa.InputError, match="at most 2048"):
        write_probes("hue", tmp_path / "probes", 100_000)


def test_scores_that_cannot_be_written_are_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    atlas = planted(tmp_path / "x.atlas", 4)

    def refuse(path: Path, write: object) -> None:
        raise aa.StoreError(f"{path} could not be written: Read-only file system")

    monkeypatch.setattr(files, "write_whole", refuse)
    scores = atlas.measure(progress=False)
    assert "are not kept" in caplog.text
    assert atlas.scores() is scores and "kind" in atlas.heads().columns
    assert len(head_scores(atlas).heads) == len(scores.kinds)


READ_ONLY = """
import sys
from attention_atlas.cli import app
atlas, page = sys.argv[1:]
lines = ["heads", atlas], ["measure", atlas], ["report", atlas, page], ["export", atlas, page]
for line in lines:
    sys.argv = ["attention-atlas", *line]
    try:
        app.main()
    except SystemExit as end:
        assert not end.code, line
"""


@pytest.mark.full
def test_commands_work_on_a_read_only_file_system(tmp_path: Path) -> None:
    folder = planted(tmp_path / "x.atlas", 4).path
    mount = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], check=False).returncode:
        pytest.skip("no file system can be made read-only here")
    command = f'{mount} && exec "$@"'
    given = [sys.executable, "-c", READ_ONLY, str(folder), str(tmp_path / "page.html")]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command, "sh", *given],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "are not kept" in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "scores.parquet").exists()


def test_a_picture_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attention_atlas.page.answers.pictures import _opened

    Image.new("RGB", (64, 64)).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(aa.StoreError, match="million pixels"):
        _opened(tmp_path / "large.png")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda atlas: atlas.weights("0"), "input is '0' (str); give a whole number"),
        (lambda atlas: atlas.weights(True), "input is True (bool)"),
        (lambda atlas: atlas.rows(0, 0, rows=[0.5]), "rows is [0.5] (list); give a list, each"),
        (lambda atlas: aa.open(as_any(3)), "folder is 3 (int); give a text or a path"),
        (lambda atlas: aa.capture("builtin:gpt", "x", bach_size=1), "no option 'bach_size'"),
        (lambda atlas: aa.capture("builtin:gpt", "x", seed=-1), "the seed is -1"),
        (lambda atlas: as_any(aa.compare)(atlas), "missing a required argument: 'second'"),
        (lambda atlas: atlas.layout(device="nope"), "no device is called 'nope'"),
        (lambda atlas: aa.ablate(3), "heads is 3 (int); give a list"),
    ],
)
def test_a_call_says_what_was_given_and_what_is_taken(
    tmp_path: Path, call: object, said: str
) -> None:
    assert callable(call)
    with pytest.raises(aa.InputError) as raised:
        call(planted(tmp_path / "x.atlas", 2))
    assert said in str(raised.value)


def test_numbers_and_lists_of_other_libraries_count() -> None:
    from collections.abc import Sequence

    assert fits(int, np.int64(3)) and fits(float, np.float32(3)) and not fits(int, 3.0)
    assert fits(Sequence[int], np.arange(3)) and fits(Sequence[int], range(3))
    assert not fits(Sequence[int], "123") and not fits(Sequence[int], np.array(3))
    assert fits(str | Head, Head("", 0, 0)) and not fits(str | None, 3)
    assert words(int | None) == "a whole number or None"
