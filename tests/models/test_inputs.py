import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from attention_atlas.models.inputs import Input, read_inputs
from attention_atlas.models.media import open_image
from attention_atlas.names.errors import InputError


def texts(found: list[Input]) -> list[str | None]:
    return [one.text for one in found]


def write_wav(path: Path, samples: "np.ndarray[Any, Any]", rate: int = 16000) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(samples.dtype.itemsize)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())


def test_a_text_is_one_input() -> None:
    assert read_inputs("the cat sat") == [Input("text", text="the cat sat")]


def test_two_texts_in_a_tuple_are_a_pair_and_in_a_list_two_inputs() -> None:
    assert read_inputs(("the cat", "sat")) == [Input("pair", text="the cat", second="sat")]
    assert texts(read_inputs(["the cat", "sat"])) == ["the cat", "sat"]


def test_a_text_file_gives_a_line_an_input_without_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one line\n\n  \nanother\n", encoding="utf-8")
    found = read_inputs(tmp_path / "a.txt")
    assert texts(found) == ["one line", "another"]
    assert {one.source for one in found} == {"a.txt"}


def test_a_csv_keeps_the_words_na_and_null_and_carries_other_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,text\n1,NA\n,null\n3,"two\nlines"\n', encoding="utf-8")
    found = read_inputs(str(tmp_path / "a.csv"))
    assert texts(found) == ["NA", "null", "two\nlines"]
    assert [one.columns["n"] for one in found] == [1, None, 3]


def test_the_only_column_of_texts_is_found_by_itself(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2], "sentence": ["a b", "c d"], "score": [0.5, None]})
    frame.to_parquet(tmp_path / "a.parquet")
    found = read_inputs(tmp_path / "a.parquet")
    assert texts(found) == ["a b", "c d"]
    assert found[1].columns == {"id": 2, "score": None}
    assert texts(read_inputs(frame)) == ["a b", "c d"]


def test_a_second_column_makes_pairs(tmp_path: Path) -> None:
    lines = '{"text": "a", "other": "b", "label": true}\n\n{"text": "c", "other": "d"}\n'
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    first, second = read_inputs(tmp_path / "a.jsonl", second_column="other")
    assert (first.kind, first.text, first.second) == ("pair", "a", "b")
    assert (first.columns, second.columns) == ({"label": True}, {"label": None})


def test_pictures_of_a_folder_come_in_the_order_a_person_would_give_them(tmp_path: Path) -> None:
    for name in ("cat10.png", "cat2.png", "Bird1.PNG"):
        Image.new("RGB", (4, 4)).save(tmp_path / name, format="PNG")
    (tmp_path / "notes.txt").write_text("no picture", encoding="utf-8")
    found = read_inputs(tmp_path)
    assert [one.source for one in found] == ["Bird1.PNG", "cat2.png", "cat10.png"]


def test_a_folder_is_listed_without_opening_its_files(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture")
    (found,) = read_inputs(tmp_path)
    with pytest.raises(InputError, match=r"broken\.png is not an image"):
        open_image(found.images[0])


def test_a_picture_that_was_cut_short_is_named(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.png")
    (tmp_path / "half.png").write_bytes((tmp_path / "whole.png").read_bytes()[:4000])
    with pytest.raises(InputError, match=r"half\.png is not an image"):
        open_image(tmp_path / "half.png")


def test_a_picture_is_turned_upright_and_made_rgb(tmp_path: Path) -> None:
    lying = Image.new("L", (6, 4))
    exif = lying.getexif()
    exif[0x0112] = 6  # turn by 90 degrees
    lying.save(tmp_path / "phone.jpg", exif=exif)
    opened = open_image(tmp_path / "phone.jpg")
    assert (opened.size, opened.mode) == ((4, 6), "RGB")


@pytest.mark.parametrize("kind", [np.int16, np.int32])
def test_a_sound_becomes_the_mean_of_its_channels_between_minus_one_and_one(
    tmp_path: Path, kind: Any
) -> None:
    half = -(np.iinfo(kind).min // 2)
    write_wav(tmp_path / "a.wav", np.array([[half, 0], [half, half], [-half, -half]], dtype=kind))
    (found,) = read_inputs(tmp_path / "a.wav")
    assert found.audio is not None
    assert found.audio.tolist() == [0.25, 0.5, -0.5]
    assert (found.kind, found.rate) == ("audio", 16000)


def test_keys_say_what_an_entry_is() -> None:
    picture = Image.new("RGB", (4, 4))
    both, alone, pair = read_inputs(
        [
            {"text": "a cat", "image": picture, "label": 3},
            {"image": "cat.png"},
            {"text": "a", "second": "b"},
        ]
    )
    assert (both.kind, both.images, both.columns) == ("image-text", (picture,), {"label": 3})
    assert (alone.kind, alone.images) == ("image", (Path("cat.png"),))
    assert (pair.kind, pair.second) == ("pair", "b")


def test_a_padded_batch_of_tensors_becomes_its_rows() -> None:
    ids = torch.tensor([[5, 6, 0], [7, 8, 9]])
    first, second = read_inputs({"input_ids": ids, "attention_mask": (ids > 0).long()})
    assert first.tensors is not None and second.tensors is not None
    assert first.tensors["attention_mask"].tolist() == [[1, 1, 0]]
    assert second.tensors["input_ids"].tolist() == [[7, 8, 9]]


@pytest.mark.parametrize("ids", [[5, 6], np.array([5, 6]), torch.tensor([[5, 6]]), [[5, 6]]])
def test_a_row_of_ids_has_its_batch_axis_however_it_is_given(ids: Any) -> None:
    (found,) = read_inputs([{"input_ids": ids}])
    assert found.tensors is not None
    assert found.tensors["input_ids"].tolist() == [[5, 6]]


def test_a_picture_without_a_batch_axis_is_one_input() -> None:
    (found,) = read_inputs({"pixel_values": torch.zeros(3, 8, 8)})
    assert found.tensors is not None
    assert found.tensors["pixel_values"].shape == (1, 3, 8, 8)


def test_a_limit_draws_evenly_in_order_and_again_the_same() -> None:
    words = [f"word {i}" for i in range(1000)]
    drawn = [int((one.text or "").split()[1]) for one in read_inputs(words, limit=100, seed=3)]
    assert drawn == sorted(set(drawn)) and len(drawn) == 100
    assert 400 < np.mean(drawn) < 600
    assert texts(read_inputs(words, limit=100, seed=3)) == [f"word {i}" for i in drawn]
    assert texts(read_inputs(words, limit=100, seed=4)) != [f"word {i}" for i in drawn]


def test_a_text_of_one_word_that_ends_like_a_file_must_be_one() -> None:
    with pytest.raises(InputError, match=r"no file is called missing\.csv"):
        read_inputs("missing.csv")
    assert read_inputs("look into missing.csv")[0].kind == "text"
    assert read_inputs("x" * 5000)[0].kind == "text"


FILES: dict[str, tuple[bytes, str]] = {
    "a.pdf": (b"%PDF-1.4", r"a\.pdf is not a kind of file that can be read; give \.txt, \.jsonl"),
    "a.txt": (b"\x89PNG\x00\xff", r"a\.txt is not a text file"),
    "zero.txt": (b"a\x00b", r"zero\.txt is not a text file"),
    "empty.txt": (b"\n\n", r"empty\.txt is empty"),
    "empty.csv": (b"", r"empty\.csv is empty"),
    "head.csv": (b"text,n\n", r"head\.csv is empty"),
    "ragged.csv": (b"text,n\na,1\nb,2,3\n", r"ragged\.csv is not a table"),
    "blank.csv": (b"text,n\n,1\n", r"blank\.csv has no text in text"),
    "two.csv": (b"one,two\na,b\n", r"two\.csv does not say which column.* it has one, two"),
    "a.parquet": (b"text", r"a\.parquet is not a Parquet file"),
    "a.jsonl": (b'{"text": "a"}\n{"text": \n', r"line 2 of a\.jsonl is not JSON"),
    "list.jsonl": (b"[1]\n", r"line 1 of list\.jsonl is a list"),
    "lists.jsonl": (b'{"text": ["a"]}\n', r"column 'text' of lists\.jsonl holds list values"),
    "a.wav": (b"RIFF", r"a\.wav is not a PCM \.wav file"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name: str) -> None:
    content, sentence = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_inputs(tmp_path / name)


def test_a_missing_column_lists_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,n\na,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.csv has no column 'body'; it has text, n"):
        read_inputs(tmp_path / "a.csv", column="body")
    with pytest.raises(InputError, match=r"no column 'other'"):
        read_inputs(tmp_path / "a.csv", second_column="other")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("  ", "an empty text was given"),
        (("a", ""), "the second of an input is ''"),
        ([], "the list of inputs is empty"),
        (7, "an input of type int cannot be read"),
        ({"colour": 1}, "an input with the keys colour cannot be read"),
        ({"rate": 1}, "neither text, image nor audio"),
        (np.zeros((2, 2)), r"an array of shape \(2, 2\)"),
        (np.zeros(0), "is not a sound"),
        ({"input_ids": [[1, 2], [3]]}, "the rows of input_ids differ in length"),
    ],
)
def test_what_is_no_input_says_so(given: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_inputs(given)


def test_a_folder_without_pictures_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no images"):
        read_inputs(tmp_path)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="a limit of 0 inputs"):
        read_inputs(["a b", "c d"], limit=0)


def test_reading_inputs_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, attention_atlas.models.inputs;"
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
