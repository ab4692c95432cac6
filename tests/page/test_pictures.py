"""Pictures, thumbnails and gazes: what a page gets to draw an image view with."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers as hf
from PIL import Image

import attention_atlas as aa
from attention_atlas.page.hosts.export import save_folder
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.packing import pack, unpack
from tests.record.seeing import WIDTH, cropped, local, save, stretched
from tests.test_bad_input import run
from tests.tolerance import reading_tolerance, step_tolerance, unit

SIZES = [(120, 60), (40, 90), (64, 64)]


def colours(size: tuple[int, int]) -> Image.Image:
    """Red on the left, blue on the right; the lower half is darker."""
    width, height = size
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2, 0] = 200
    pixels[:, width // 2 :, 2] = 200
    pixels[height // 2 :] //= 2
    return Image.fromarray(pixels)


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    folder = tmp_path_factory.mktemp("pictures")
    save([colours(size) for size in SIZES], folder / "given")
    model = hf.ViTModel(hf.ViTConfig(**WIDTH, image_size=32, patch_size=8)).eval()
    made = aa.capture(
        model, folder / "given", tokenizer=stretched(32, 32), path=folder / "x.atlas",
        progress=False,
    )  # fmt: skip
    made.layout("pca", progress=False)
    return made


def ask(atlas: aa.Atlas, path: str) -> Any:
    """The packet as the browser reads it."""
    return unpack(pack(Answers(atlas).answer(path)))


def opened(data: Any) -> Image.Image:
    return Image.open(io.BytesIO(data.tobytes())).convert("RGB")


def test_about_says_which_streams_have_places_and_how_thumbnails_come(atlas: aa.Atlas) -> None:
    about = ask(atlas, "about")
    assert about["pictures"] is True and about["patches"] == ["encoder"]
    assert [line["label"] for line in about["inputs"]] == ["0.png", "1.png", "2.png"]
    # three pictures are two by two cells, so the finest of 512 still fits
    assert about["thumbs"][0] == {"side": 16, "width": 32, "height": 32}
    assert about["thumbs"][-1] == {"side": 512, "width": 1024, "height": 1024}


def test_an_input_tells_its_pictures_and_where_its_tokens_lie(atlas: aa.Atlas) -> None:
    info = ask(atlas, "input/1")
    assert info["pictures"] == [{"width": 40, "height": 90, "name": "1.png"}]
    (stream,) = info["streams"]
    assert stream["image"].tolist() == [-1] + [0] * 16
    assert np.isnan(stream["box"][0]).all()
    assert stream["box"][1 + 4 * 2 + 3] == pytest.approx([0.75, 0.5, 1, 0.75], abs=unit())


def test_a_picture_comes_as_it_is_and_a_large_one_smaller(atlas: aa.Atlas, tmp_path: Path) -> None:
    sent = ask(atlas, "picture/0/0")
    assert (sent["width"], sent["height"], sent["mime"]) == (120, 60, "image/png")
    assert (np.asarray(opened(sent["data"])) == np.asarray(colours(SIZES[0]))).all()
    paths = save([colours((3000, 1500))], tmp_path / "large")
    model = hf.ViTModel(hf.ViTConfig(**WIDTH, image_size=32, patch_size=8)).eval()
    large = aa.capture(model, paths, tokenizer=stretched(32, 32), progress=False)
    assert ask(large, "input/0")["pictures"][0]["width"] == 3000
    sent = ask(large, "picture/0/0")
    assert (sent["width"], sent["height"]) == (1024, 512) == opened(sent["data"]).size


def test_each_cell_of_a_sheet_shows_its_picture(atlas: aa.Atlas) -> None:
    sheet = ask(atlas, "thumbs/3")  # 128 pixels a cell
    whole = np.asarray(opened(sheet["data"]), float)
    assert whole.shape[:2] == (sheet["height"], sheet["width"]) == (256, 256)
    assert sheet["input"].tolist() == [0, 1, 2] and sheet["image"].tolist() == [0, 0, 0]
    for (x, y, width, height), size in zip(sheet["cell"], SIZES, strict=True):
        assert width / height == pytest.approx(size[0] / size[1], rel=0.02)
        cell = whole[y : y + height, x : x + width]
        corners = cell[5, 5], cell[5, -5], cell[-5, 5]
        expected = [[200, 0, 0], [0, 0, 200], [100, 0, 0]]
        for found, colour in zip(corners, expected, strict=True):
            assert found == pytest.approx(colour, abs=12)


def test_points_carry_places_and_the_colours_of_their_patches(atlas: aa.Atlas) -> None:
    points = ask(atlas, "points/pca-2d/encoder")
    columns = {column["name"]: column for column in points["columns"]}
    assert {"row", "column", "brightness", "hue", "saturation"} <= set(columns)
    assert not {"frequency", "length", "punctuation"} & set(columns)
    hue = columns["hue"]
    assert (hue["low"], hue["high"]) == (0, 360)
    first = np.flatnonzero((points["input"] == 0) & (points["position"] == 1))[0]  # upper left
    degrees = hue["values"][first] / 65534 * 360
    assert degrees == pytest.approx(0, abs=0.1) or degrees == pytest.approx(360, abs=0.1)
    right = np.flatnonzero((points["input"] == 0) & (points["position"] == 4))[0]
    assert hue["values"][right] / 65534 * 360 == pytest.approx(240, abs=0.1)
    # by hand: red of 200 has 0.2126 · 200 / 255
    light = columns["brightness"]
    span = light["high"] - light["low"]
    assert light["low"] + light["values"][first] / 65534 * span == pytest.approx(0.1667, abs=1e-3)
    assert points["image"][first] == 0 and points["box"][first].tolist() == [0, 0, 0.25, 0.25]


def test_a_gaze_is_the_weights_of_a_head_their_mean_or_their_rollout(atlas: aa.Atlas) -> None:
    layers = [atlas.layer_weights(2, layer) for layer in (0, 1)]
    step = step_tolerance() + 3 * reading_tolerance(atlas, 2)  # two factors and a mean, each ≤ 1
    head = ask(atlas, "gaze/2/encoder/1/1")
    assert head["weights"] / 65535 == pytest.approx(layers[1][1], abs=step)
    mean = ask(atlas, "gaze/2/encoder/0/mean")
    assert mean["weights"] / 65535 == pytest.approx(layers[0].mean(0), abs=step)
    one, two = ((layer.mean(0) + np.eye(17)) / 2 for layer in layers)
    rolled = ask(atlas, "gaze/2/encoder/1/rollout")
    assert rolled["weights"] / 65535 == pytest.approx(two @ one, abs=step)
    assert (head["strongest"] == layers[1][1].argmax(1)).all()
    assert head["mark"][0] == 0  # the class token is no patch


def test_a_picture_cut_in_the_middle_is_sent_whole() -> None:
    model = local(hf.CLIPVisionModel(hf.CLIPVisionConfig(**WIDTH, image_size=32, patch_size=8)))
    atlas = aa.capture(model, colours((96, 64)), tokenizer=cropped(32), progress=False)
    assert ask(atlas, "picture/0/0")["width"] == 96
    box = ask(atlas, "input/0")["streams"][0]["box"]
    assert np.nanmin(box[:, 0]) == pytest.approx(1 / 6, abs=0.005)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("picture/0/1", "input 0 has no picture 1; it has pictures 0 to 0"),
        ("picture/0/../../x", "has the wrong number of parts"),
        ("picture/7/0", "there is no input 7"),
        ("thumbs/9", "there is no sheet 9 of thumbnails; there is 0 to 5"),
        ("gaze/0/encoder/1/7", "has no head '7'; give 0 to 1, mean or rollout"),
        ("gaze/0/encoder/9/mean", "encoder has no layer 9; it has 0, 1"),
    ],
)
def test_what_is_not_there_is_said(atlas: aa.Atlas, path: str, said: str) -> None:
    with pytest.raises(aa.PickError, match=said.replace("(", r"\(")):
        Answers(atlas).answer(path)


def test_texts_have_no_pictures(gpt: aa.Atlas) -> None:
    about = ask(gpt, "about")
    assert about["pictures"] is False and about["patches"] == [] and about["thumbs"] == []
    assert ask(gpt, "input/0")["streams"][0]["box"] is None
    with pytest.raises(aa.PickError, match="these inputs have no pictures"):
        Answers(gpt).answer("picture/0/0")
    with pytest.raises(aa.InputError, match="needs an atlas of pictures"):
        aa.image_view(gpt)


def test_merged_stages_have_no_rollout() -> None:
    config = hf.SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[1, 1],
                           num_heads=[2, 2], window_size=4)  # fmt: skip
    atlas = aa.capture(
        hf.SwinModel(config).eval(), colours((64, 64)), tokenizer=stretched(32, 32), progress=False
    )
    with pytest.raises(aa.PickError, match="rollout needs the same tokens in every layer"):
        Answers(atlas).answer("gaze/0/encoder/1/rollout")
    assert ask(atlas, "gaze/0/encoder/1/mean")["weights"].shape == (16, 16)


def test_a_path_in_a_strange_atlas_does_not_lead_out_of_it(atlas: aa.Atlas) -> None:
    strange = aa.open(atlas.path)
    frame = strange.inputs()
    frame["images"] = [["../given/0.png"]] * len(frame)
    with pytest.raises(aa.StoreError, match="is missing from"):
        Answers(strange).answer("picture/0/0")


def test_an_image_view_picks_a_patch_and_is_saved_with_what_it_needs(
    atlas: aa.Atlas, stand_in: Path, tmp_path: Path
) -> None:
    view = aa.image_view(atlas, input=1, head="L1H0", patch=(2, 3), side="key")
    assert repr(view).startswith("<View: image of")
    assert view.picks["token"] == {"side": "key", "position": 1 + 2 * 4 + 3}
    with pytest.raises(
        aa.PickError, match=r"there is no patch \(4, 0\) in picture 0; it has 4 × 4"
    ):
        aa.image_view(atlas, patch=(4, 0))
    page = view.save(tmp_path / "page.html").read_text()
    for path in ("picture/1/0", "gaze/1/encoder/1/0", "gaze/0/encoder/0/rollout", "input/1"):
        assert f'data-path="{path}"' in page
    options = page.partition('id="atlas-options">')[2].partition("</script>")[0]
    assert json.loads(options)["tab"] == "image"
    save_folder(tmp_path / "site", atlas)
    for path in ("picture/2/0", "thumbs/0", "gaze/2/encoder/0/mean"):
        packet = (tmp_path / "site" / "api" / path).read_bytes()
        assert packet == Answers(atlas).packet(path)[0]


def test_the_command_line_shows_a_picture_where_a_picture_is_given(
    stand_in: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = save([colours((64, 64))], tmp_path / "one")
    assert run("view", "builtin:vit", str(path), "--save", str(tmp_path / "page.html")) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert 'data-path="picture/0/0"' in page and '"tab": "image"' in page
