"""Pictures as people have them: grey, transparent, tiny, huge, broken. Each shows or is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers as hf
from PIL import Image

import attention_atlas as aa
from attention_atlas.models.media import open_image
from attention_atlas.page.live.answers import Answers
from tests.record.seeing import WIDTH, stretched, tokenizer
from tests.test_bad_input import run


@pytest.fixture(scope="module")
def vit() -> tuple[Any, Any]:
    model = hf.ViTModel(hf.ViTConfig(**WIDTH, image_size=32, patch_size=8)).eval()
    return model, stretched(32, 32)


def look(vit: tuple[Any, Any], pictures: Any) -> aa.Atlas:
    return aa.capture(vit[0], pictures, tokenizer=vit[1], progress=False)


def brightness(atlas: aa.Atlas) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    return atlas.tokens(0)["brightness"].to_numpy()[1:]


def test_a_grey_picture_has_brightness_and_no_hue(vit: tuple[Any, Any]) -> None:
    atlas = look(vit, Image.new("L", (40, 40), 51))
    assert brightness(atlas) == pytest.approx(0.2, abs=1e-3)
    assert atlas.tokens(0)["hue"].isna().all()


def test_sixteen_bits_are_not_all_white(vit: tuple[Any, Any], tmp_path: Path) -> None:
    Image.fromarray(np.full((20, 20), 13107, np.uint16)).save(tmp_path / "deep.png")
    atlas = look(vit, tmp_path / "deep.png")
    assert brightness(atlas) == pytest.approx(0.2, abs=0.005)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white_for_model_and_page_alike(
    vit: tuple[Any, Any], mode: str, tmp_path: Path
) -> None:
    clear = Image.new("RGBA", (16, 16), (0, 0, 0, 0)).convert(mode)
    options: dict[str, Any] = {"transparency": clear.getpixel((0, 0))} if mode == "P" else {}
    clear.save(tmp_path / "clear.png", **options)
    atlas = look(vit, tmp_path / "clear.png")
    assert brightness(atlas) == pytest.approx(1)
    white = look(vit, Image.new("RGB", (16, 16), "white"))
    assert (atlas.queries("L0H0", 0) == white.queries("L0H0", 0)).all()
    sent = Answers(atlas).answer("picture/0/0")
    (tmp_path / "sent.png").write_bytes(sent.data.tobytes())
    assert open_image(tmp_path / "sent.png").getpixel((8, 8)) == (255, 255, 255)


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (3, 1), (5, 3), (2, 200)])
def test_a_tiny_picture_is_shown_whole(vit: tuple[Any, Any], size: tuple[int, int]) -> None:
    atlas = look(vit, Image.new("RGB", size, (255, 0, 0)))
    box = atlas.tokens(0)[["left", "top", "right", "bottom"]].to_numpy()[1:]
    assert box.min() == pytest.approx(0, abs=0.03) and box.max() == pytest.approx(1, abs=0.03)
    assert brightness(atlas) == pytest.approx(0.2126, abs=1e-3)
    assert Answers(atlas).answer("input/0").pictures[0].width == size[0]


def test_a_picture_with_more_pixels_than_is_safe_is_refused_by_name(
    vit: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (2000, 1000)).save(tmp_path / "huge.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10**6)
    with pytest.raises(aa.InputError, match=r"huge\.png has more than 1 million pixels; make it"):
        look(vit, tmp_path / "huge.png")


@pytest.mark.full
def test_a_large_picture_is_taken_and_stored_as_it_is(vit: tuple[Any, Any], tmp_path: Path) -> None:
    Image.new("RGB", (6000, 4000), (0, 255, 0)).save(tmp_path / "large.png")
    atlas = look(vit, tmp_path / "large.png")
    info = Answers(atlas).answer("input/0").pictures[0]
    assert (info.width, info.height, info.name) == (6000, 4000, "large.png")


def broken_folder(folder: Path) -> Path:
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    for number in range(3):
        Image.fromarray(noise).save(folder / f"good{number}.png")
    Image.fromarray(noise).save(folder / "whole.jpg")
    (folder / "half.jpg").write_bytes((folder / "whole.jpg").read_bytes()[:900])
    (folder / "half.png").write_bytes((folder / "good0.png").read_bytes()[:4000])
    (folder / "text.png").write_text("no picture")
    return folder


def test_broken_pictures_of_a_folder_are_left_out_named_and_counted(
    vit: tuple[Any, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = broken_folder(tmp_path / "pictures")
    atlas = look(vit, folder)
    assert atlas.inputs()["source"].tolist() == [
        "good0.png", "good1.png", "good2.png", "whole.jpg",
    ]  # fmt: skip
    said = capsys.readouterr().err
    assert "left out 3 of 7 pictures" in said
    assert all(name in said for name in ("half.jpg", "half.png", "text.png"))
    (note,) = Answers(atlas).answer("about").notes
    assert note == "left out, since they cannot be opened: half.jpg, half.png, text.png"


def test_the_command_counts_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = broken_folder(tmp_path / "pictures")
    assert run("capture", "builtin:vit", str(folder), "-o", str(tmp_path / "x.atlas")) == 0
    assert "4 inputs (3 left out)" in capsys.readouterr().err


def test_a_folder_of_nothing_but_broken_pictures_is_refused(
    vit: tuple[Any, Any], tmp_path: Path
) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_text("no picture")
    with pytest.raises(aa.InputError, match=r"none of the 2 pictures can be opened, a\.png"):
        look(vit, tmp_path)


def test_a_picture_named_by_itself_is_not_left_out_quietly(
    vit: tuple[Any, Any], tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_text("no picture")
    with pytest.raises(aa.InputError, match=r"a\.png is not an image"):
        look(vit, [tmp_path / "a.png", Image.new("RGB", (8, 8))])


def test_a_text_model_given_pictures_says_what_it_takes(tmp_path: Path) -> None:
    config = hf.BertConfig(**WIDTH, vocab_size=20)
    with pytest.raises(aa.InputError, match="takes text and was given image; give what it takes"):
        aa.capture(
            hf.BertModel(config).eval(), Image.new("RGB", (8, 8)), tokenizer=tokenizer(),
            progress=False,
        )  # fmt: skip
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    arguments = ("builtin:gpt", str(tmp_path), "-o", str(tmp_path / "x.atlas"))
    assert run("capture", *arguments) == 2
    assert not (tmp_path / "x.atlas").exists()
