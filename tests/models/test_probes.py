"""Probes are what their table says, and a capture hands the values to the patches."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import transformers as hf
from PIL import Image

import attention_atlas as aa
from attention_atlas.images.probes import CELLS, PROBES, known_values, write_probes
from attention_atlas.images.upright import LUMA
from tests.record.seeing import WIDTH, stretched
from tests.test_bad_input import run


def cell(folder: Path, row: pd.Series) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """The mean colour of the pixels of one row of the table."""
    pixels = np.asarray(Image.open(folder / row["picture"]), np.float64) / 255
    height, width = pixels.shape[:2]
    part = pixels[
        round(row["top"] * height) : round(row["bottom"] * height),
        round(row["left"] * width) : round(row["right"] * width),
    ]
    return np.asarray(part.mean((0, 1)))


@pytest.mark.full
@pytest.mark.parametrize("kind", PROBES)
def test_the_command_writes_pictures_and_a_row_for_each_of_their_cells(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("probes", kind, "-o", str(tmp_path / "p"), "--size", "112") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "p")
    table = pd.read_parquet(tmp_path / "p" / "probes.parquet")
    pictures = sorted(path.name for path in (tmp_path / "p").glob("*.png"))
    assert sorted(table["picture"].unique()) == pictures and len(pictures) >= 16
    assert len(table) == len(pictures) * CELLS**2
    with Image.open(tmp_path / "p" / pictures[0]) as first:
        assert first.size == (112, 112)


def test_brightness_is_that_of_the_pixels(tmp_path: Path) -> None:
    write_probes("brightness", tmp_path, 112)
    table = pd.read_parquet(tmp_path / "probes.parquet").sample(200, random_state=0)
    for _, row in table.iterrows():
        assert cell(tmp_path, row) @ LUMA == pytest.approx(row["brightness"], abs=0.01)


def test_hues_are_those_of_the_pixels_and_equally_bright(tmp_path: Path) -> None:
    import colorsys

    write_probes("hue", tmp_path, 112)
    table = pd.read_parquet(tmp_path / "probes.parquet").sample(200, random_state=0)
    for _, row in table.iterrows():
        colour = cell(tmp_path, row)
        away = (colorsys.rgb_to_hsv(*colour)[0] * 360 - row["hue"] + 180) % 360 - 180
        assert abs(away) < 6
        assert colour @ LUMA == pytest.approx(0.45, abs=0.01)


def test_gratings_have_the_frequency_and_the_angle_they_are_said_to_have(tmp_path: Path) -> None:
    # the strongest wave of the picture's own Fourier transform
    write_probes("gratings", tmp_path, 128)
    table = pd.read_parquet(tmp_path / "probes.parquet").drop_duplicates("picture")
    assert len(table) == 32
    for _, row in table.iterrows():
        pixels = np.asarray(Image.open(tmp_path / row["picture"]).convert("L"), float)
        power = np.abs(np.fft.fft2(pixels - pixels.mean(), (512, 512)))
        down, across = np.unravel_index(power[:256].argmax(), (256, 512))
        wave = np.array([(across + 256) % 512 - 256, down]) / 4  # waves across 128 pixels
        assert np.hypot(*wave) == pytest.approx(row["frequency"], abs=0.4)
        away = (np.degrees(np.arctan2(wave[1], wave[0])) - row["angle"] + 90) % 180 - 90
        assert abs(away) < 8


def test_values_of_a_patch_are_means_over_its_box() -> None:
    edges = {"left": [0, 0.5], "top": [0.0, 0.0], "right": [0.5, 1], "bottom": [1.0, 1.0]}
    cells = pd.DataFrame({**edges, "brightness": [0.0, 1.0], "hue": [350.0, 30.0],
                          "shape": ["disc", "ground"]})  # fmt: skip
    boxes = np.array([[0, 0, 1, 1], [0.4, 0, 0.8, 0.5], [np.nan] * 4])
    found = known_values(cells, boxes)
    assert found["known brightness"] == pytest.approx([0.5, 0.75, np.nan], nan_ok=True)
    assert found["known hue"][0] == pytest.approx(10)  # half way round the short way
    assert found["known shape"] == ["disc", "ground", None]


@pytest.mark.full
def test_a_captured_folder_of_probes_gives_its_values_to_the_patches(tmp_path: Path) -> None:
    write_probes("brightness", tmp_path / "p", 112)
    model = hf.ViTModel(hf.ViTConfig(**WIDTH, image_size=28, patch_size=4)).eval()
    atlas = aa.capture(
        model, tmp_path / "p", tokenizer=stretched(28, 28), path=tmp_path / "x.atlas",
        progress=False,
    )  # fmt: skip
    tokens = atlas.tokens()
    patches = tokens[~tokens["special"]]
    away = (patches["known brightness"] - patches["brightness"]).abs()
    assert len(patches) == 16 * 49 and away.max() < 0.02
    assert tokens[tokens["special"]]["known brightness"].isna().all()


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(aa.InputError, match="is not empty"):
        write_probes("hue", tmp_path)
    with pytest.raises(aa.InputError, match="no probes are called 'sound'"):
        write_probes("sound", tmp_path / "new")
