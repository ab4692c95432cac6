"""Every patch sits where the picture says: what a spot of white changes is the patch there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import transformers as hf

import attention_atlas as aa
from tests.record.seeing import WIDTH, cropped, grey, local, spotted, stretched

SIDES = ["left", "top", "right", "bottom"]
STAGES = {"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4],
          "window_size": 4}  # fmt: skip
VISION = {**WIDTH, "image_size": 32, "patch_size": 8}


def vit(height: int = 32, width: int = 32) -> tuple[Any, Any]:
    config = hf.ViTConfig(**WIDTH, image_size=(height, width), patch_size=8)
    return local(hf.ViTModel(config)), stretched(height, width)


def plain(config: Any, processor: Any) -> tuple[Any, Any]:
    return local(hf.AutoModel.from_config(config)), processor


# Name → how the model is made, the size of the pictures, and what its patches must look like:
# how many tokens have a place, how many are special, and rows × columns.
TOWERS: dict[str, tuple[Callable[[], tuple[Any, Any]], tuple[int, int], int, int, tuple[int, int]]]
TOWERS = {
    "ViT": (vit, (64, 48), 16, 1, (4, 4)),
    "ViT, not square": (lambda: vit(32, 48), (96, 64), 24, 1, (4, 6)),
    "DeiT": (lambda: plain(hf.DeiTConfig(**VISION), stretched(32, 32)), (40, 40), 16, 2, (4, 4)),
    "DINOv2 with registers": (
        lambda: plain(
            hf.Dinov2WithRegistersConfig(**VISION, num_register_tokens=4), stretched(32, 32)
        ),
        (64, 64), 16, 5, (4, 4),
    ),
    "DINOv3": (
        lambda: plain(hf.DINOv3ViTConfig(**VISION, num_register_tokens=2), stretched(32, 48)),
        (48, 32), 24, 3, (4, 6),
    ),
    "CLIP with the middle cut out": (
        lambda: plain(hf.CLIPVisionConfig(**VISION), cropped(32)), (96, 64), 16, 1, (4, 4)
    ),
    "SigLIP": (
        lambda: plain(hf.SiglipVisionConfig(**VISION), stretched(32, 32)), (64, 64), 16, 0, (4, 4)
    ),
    "BEiT": (
        lambda: plain(hf.BeitConfig(**VISION, use_relative_position_bias=True), stretched(32, 32)),
        (64, 64), 16, 1, (4, 4),
    ),
}  # fmt: skip


SAM: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32,
    "patch_size": 4, "mlp_dim": 16, "output_channels": 8, "global_attn_indexes": [1],
}  # fmt: skip
TOWERS |= {
    "SAM, windows and a global layer": (
        lambda: plain(hf.SamVisionConfig(**SAM, window_size=4), stretched(32, 32)),
        (96, 96), 64, 0, (8, 8),
    ),
    "SAM, windows filled up with pads": (
        lambda: plain(hf.SamVisionConfig(**SAM, window_size=3), stretched(32, 32)),
        (96, 96), 64, 0, (8, 8),
    ),
    "SigLIP 2, any shape, padded": (
        lambda: plain(
            hf.Siglip2VisionConfig(**WIDTH, patch_size=8, num_patches=64),
            hf.Siglip2ImageProcessorPil(patch_size=8, max_num_patches=30),
        ),
        (96, 64), 24, 0, (4, 6),
    ),
    "Pixtral": (
        lambda: plain(
            hf.PixtralVisionConfig(**WIDTH, patch_size=8, image_size=64, head_dim=8),
            hf.PixtralImageProcessorPil(patch_size=8, size={"longest_edge": 64}),
        ),
        (96, 64), 48, 0, (6, 8),
    ),
}  # fmt: skip


def boxes(atlas: aa.Atlas, stream: str, input: int = 0) -> npt.NDArray[np.float64]:
    return atlas.tokens(input, stream)[SIDES].to_numpy(np.float64)


def changed(atlas: aa.Atlas, head: str, input: int) -> list[int]:
    """The tokens whose query is not what it is for the plain grey picture, input 0."""
    moved = np.abs(atlas.queries(head, input) - atlas.queries(head, 0)).max(1)
    return np.flatnonzero(moved > 0.02 * moved.max()).tolist() if moved.max() > 0 else []


@pytest.mark.full
@pytest.mark.parametrize("name", TOWERS)
def test_a_white_spot_changes_the_patch_whose_box_it_is_in(name: str, tmp_path: Path) -> None:
    make, size, count, special, (rows, columns) = TOWERS[name]
    model, processor = make()
    first = aa.capture(model, grey(size), tokenizer=processor, progress=False)
    stream = first.towers[0].layers[0].queries
    tokens, box = first.tokens(0, stream), boxes(first, stream)
    there = np.flatnonzero(~np.isnan(box).any(1))
    assert len(there) == count and tokens["special"].sum() == special
    assert not tokens["special"].to_numpy()[there].any()
    assert (tokens["row"].max() + 1, tokens["column"].max() + 1) == (rows, columns)
    assert set(tokens["image"].to_numpy()[there]) == {0}
    pictures = [grey(size), *(spotted(size, box[place]) for place in there)]
    atlas = aa.capture(model, pictures, tokenizer=processor, progress=False)
    for layer in atlas.towers[0].layers:
        mine = boxes(atlas, layer.queries)
        for number, place in enumerate(there, start=1):
            (found,) = changed(atlas, f"L{layer.layer}H0", number)
            assert mine[found] == pytest.approx(box[place])
            assert found == place or layer.queries != stream


def test_a_picture_cut_in_the_middle_has_boxes_only_there() -> None:
    # 96 × 64 becomes 48 × 32, of which the middle 32 columns stay: 16 of 96 pixels go on each side
    model, processor = TOWERS["CLIP with the middle cut out"][0]()
    atlas = aa.capture(model, grey((96, 64)), tokenizer=processor, progress=False)
    box = boxes(atlas, "encoder")[1:].reshape(4, 4, 4)
    assert box[0, 0] == pytest.approx([16 / 96, 0, 32 / 96, 0.25], abs=0.004)
    assert box[3, 3] == pytest.approx([64 / 96, 0.75, 80 / 96, 1], abs=0.004)


@pytest.mark.full
@pytest.mark.parametrize("make", [hf.SwinConfig, hf.Swinv2Config], ids=["Swin", "Swin v2"])
@pytest.mark.parametrize(("height", "width"), [(32, 32), (32, 48)])
def test_windows_shifted_windows_and_merged_patches_sit_where_they_show(
    make: Any, height: int, width: int
) -> None:
    config = make(**{**STAGES, "image_size": (height, width)})
    model, processor = local(hf.AutoModel.from_config(config)), stretched(height, width)
    size = (3 * width, 3 * height)
    first = aa.capture(model, grey(size), tokenizer=processor, progress=False)
    layers = first.towers[0].layers
    assert len({layer.queries for layer in layers}) >= 3  # shifted ones have their own order
    for layer in layers:
        box = boxes(first, layer.queries)
        there = np.flatnonzero(~np.isnan(box).any(1))
        stage = 0 if layer.layer < 2 else 1
        patch = 4 << stage
        assert len(there) == height * width // patch**2
        chosen = there[:: max(1, len(there) // 8)]
        pictures = [grey(size), *(spotted(size, box[place]) for place in chosen)]
        atlas = aa.capture(model, pictures, tokenizer=processor, progress=False)
        for number, place in enumerate(chosen, start=1):
            assert changed(atlas, f"L{layer.layer}H0", number) == [place]
