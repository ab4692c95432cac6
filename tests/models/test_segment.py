"""Patches get the label of what a segmentation model sees there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from PIL import Image

import attention_atlas as aa
from attention_atlas.page.live.answers import Answers
from tests.record.seeing import WIDTH, cropped, stretched
from tests.test_bad_input import run


def half_red(size: tuple[int, int]) -> Image.Image:
    """Red on the left third, blue on the rest."""
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    pixels[:, : size[0] // 3, 0] = 255
    pixels[:, size[0] // 3 :, 2] = 255
    return Image.fromarray(pixels)


def atlas_of(path: Path | None, processor: Any, size: tuple[int, int]) -> aa.Atlas:
    model = hf.ViTModel(hf.ViTConfig(**WIDTH, image_size=24, patch_size=4)).eval()
    return aa.capture(model, [half_red(size)] * 2, tokenizer=processor, path=path, progress=False)


class ByColour(torch.nn.Module):
    """Stands for a segmentation model: red pixels are "brick", blue ones "sky", others "else"."""

    def __init__(self) -> None:
        super().__init__()
        self.config = hf.PretrainedConfig(id2label={0: "else", 1: "brick", 2: "sky"})
        self.device, self.dtype = torch.device("cpu"), torch.float32

    def forward(self, pixel_values: torch.Tensor) -> Any:
        red, green, blue = pixel_values[0]
        logits = torch.stack([green + 0.1, red, blue])[None]
        small = torch.nn.functional.avg_pool2d(logits, 2)

        class Output:
            logits = small

        return Output


@pytest.mark.parametrize("seen_by", [stretched(24, 24), cropped(24)], ids=["whole", "middle"])
def test_a_patch_has_the_label_of_its_own_place_in_the_picture(seen_by: Any) -> None:
    # the segmenter stretches the picture, the atlas's model may cut out its middle: 12 of 36 pixels
    # of the left third are gone then, so the border lies at a quarter of what is left
    atlas = atlas_of(None, seen_by, (36, 24))
    tokens = atlas.label(ByColour(), stretched(48, 48), progress=False)
    patches = tokens[~tokens["special"]]
    right = patches["label"] == "sky"
    assert set(patches["label"]) == {"brick", "sky"}
    assert (patches[right]["left"] >= 1 / 3 - 0.09).all()
    assert (patches[~right]["right"] <= 1 / 3 + 0.09).all()
    assert tokens[tokens["special"]]["label"].isna().all()


@pytest.mark.full
def test_labels_stay_in_the_folder_and_colour_its_maps(tmp_path: Path) -> None:
    atlas = atlas_of(tmp_path / "x.atlas", stretched(24, 24), (36, 24))
    atlas.label(ByColour(), stretched(48, 48), progress=False)
    again = aa.open(tmp_path / "x.atlas")
    again.layout("pca", progress=False)
    columns = Answers(again).answer("points/pca-2d/encoder").columns
    (label,) = [column for column in columns if column.name == "label"]
    assert label.names == ["brick", "sky"]
    fresh = aa.capture(
        hf.ViTModel(hf.ViTConfig(**WIDTH, image_size=24, patch_size=4)).eval(),
        half_red((36, 24)), tokenizer=stretched(24, 24), path=tmp_path / "x.atlas",
        overwrite=True, progress=False,
    )  # fmt: skip
    assert "label" not in fresh.tokens()


def test_a_named_model_labels_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    config = hf.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32],
        patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[2, 4], mlp_ratios=[2, 2],
        decoder_hidden_size=16, num_labels=3, id2label={0: "cat", 1: "dog", 2: "mat"},
        label2id={"cat": 0, "dog": 1, "mat": 2},
    )  # fmt: skip
    hf.SegformerForSemanticSegmentation(config).save_pretrained(tmp_path / "segmenter")
    hf.SegformerImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(
        tmp_path / "segmenter"
    )
    atlas_of(tmp_path / "x.atlas", stretched(24, 24), (36, 24))
    arguments = ("label", str(tmp_path / "x.atlas"), "--model", str(tmp_path / "segmenter"))
    assert run(*arguments) == 0
    counts = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert sum(int(count) for count, _ in counts) == 2 * 36
    assert {name for _, name in counts} <= {"cat", "dog", "mat"}


def test_a_model_of_masks_labels_too() -> None:
    torch.manual_seed(0)
    config = hf.MaskFormerConfig(
        backbone_config=hf.SwinConfig(
            image_size=32, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1], window_size=2,
            out_features=["stage1", "stage2", "stage3", "stage4"],
        ),
        decoder_config=hf.DetrConfig(
            d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, num_queries=4,
        ),
        mask_feature_size=32, fpn_feature_size=32, num_labels=2, id2label={0: "a", 1: "b"},
    )  # fmt: skip
    model = hf.MaskFormerForInstanceSegmentation(config).eval()
    tokens = atlas_of(None, stretched(24, 24), (36, 24)).label(
        model, stretched(64, 64), progress=False
    )
    assert set(tokens["label"].dropna()) <= {"a", "b"}
    assert tokens["label"].notna().sum() == 2 * 36


def test_what_cannot_label_says_so(tmp_path: Path) -> None:
    classifier = hf.ViTForImageClassification(
        hf.ViTConfig(**WIDTH, image_size=24, patch_size=4)
    ).eval()
    atlas = atlas_of(tmp_path / "x.atlas", stretched(24, 24), (36, 24))
    with pytest.raises(aa.ModelError, match="does not name parts of a picture"):
        atlas.label(classifier, stretched(24, 24), progress=False)
    assert "label" not in aa.open(tmp_path / "x.atlas").tokens()
