"""In multimodal models, tiles and placeholders inside the text sit where the picture says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import transformers as hf
from PIL import Image

import attention_atlas as aa
from tests.record.seeing import WIDTH, cropped, grey, local, spotted, stretched, tokenizer
from tests.record.test_patches import boxes, changed

VISION = {**WIDTH, "image_size": 32, "patch_size": 8}
TEXT = {**WIDTH, "vocab_size": 30, "max_position_embeddings": 400, "num_key_value_heads": 1}
WORDS = "what is this"


def llava() -> tuple[Any, Any]:
    config = hf.LlavaConfig(
        text_config=hf.LlamaConfig(**TEXT), vision_config=hf.CLIPVisionConfig(**VISION),
        image_token_id=4, vision_feature_layer=-1,
    )  # fmt: skip
    processor = hf.LlavaProcessor(
        cropped(32), tokenizer(), patch_size=8, vision_feature_select_strategy="default",
        image_token="<image>", num_additional_image_tokens=1,
    )  # fmt: skip
    return local(hf.LlavaForConditionalGeneration(config)), processor


def llava_next() -> tuple[Any, Any]:
    pinpoints = [[32, 64], [64, 32], [64, 64]]
    config = hf.LlavaNextConfig(
        text_config=hf.LlamaConfig(**TEXT), vision_config=hf.CLIPVisionConfig(**VISION),
        image_token_id=4, image_grid_pinpoints=pinpoints, vision_feature_layer=-1,
    )  # fmt: skip
    pictures = hf.LlavaNextImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32},
        image_grid_pinpoints=pinpoints,
    )  # fmt: skip
    processor = hf.LlavaNextProcessor(
        pictures, tokenizer(), patch_size=8, vision_feature_select_strategy="default",
        image_token="<image>", num_additional_image_tokens=1,
    )  # fmt: skip
    return local(hf.LlavaNextForConditionalGeneration(config)), processor


def _qwen(config: Any, model: Any, vision: dict[str, Any]) -> tuple[Any, Any]:
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    made = config(
        text_config={**TEXT, "rope_parameters": rope, "bos_token_id": 1, "eos_token_id": 2},
        vision_config={"depth": 2, "hidden_size": 16, "num_heads": 2, "patch_size": 4, **vision},
        image_token_id=5, video_token_id=6, vision_start_token_id=7, vision_end_token_id=8,
    )  # fmt: skip

    class WithoutVideo(hf.Qwen2VLProcessor):  # type: ignore[misc]  # videos need torchvision
        def check_argument_for_proper_class(self, name: str, value: Any) -> Any:
            return None if value is None else super().check_argument_for_proper_class(name, value)

    pictures = hf.Qwen2VLImageProcessorPil(
        patch_size=4, merge_size=2, min_pixels=64, max_pixels=4000
    )
    processor = WithoutVideo(image_processor=pictures, tokenizer=tokenizer(), video_processor=None)
    return local(model(made)), processor


def qwen2() -> tuple[Any, Any]:
    return _qwen(hf.Qwen2VLConfig, hf.Qwen2VLForConditionalGeneration, {"embed_dim": 16})


def qwen25() -> tuple[Any, Any]:
    vision = {"out_hidden_size": 16, "intermediate_size": 16, "window_size": 16,
              "fullatt_block_indexes": [1]}  # fmt: skip
    return _qwen(hf.Qwen2_5_VLConfig, hf.Qwen2_5_VLForConditionalGeneration, vision)


def idefics3() -> tuple[Any, Any]:
    config = hf.Idefics3Config(
        text_config=hf.LlamaConfig(**TEXT), vision_config=VISION, image_token_id=4, scale_factor=2,
        pad_token_id=0,
    )  # fmt: skip
    pictures = hf.Idefics3ImageProcessorPil(
        size={"longest_edge": 64}, max_image_size={"longest_edge": 32}
    )
    processor = hf.Idefics3Processor(pictures, tokenizer(), image_seq_len=4)
    return local(hf.Idefics3ForConditionalGeneration(config)), processor


# Name → how it is made, the size of the picture, patches with a place in the tower and in the text
MODELS: dict[str, tuple[Callable[[], tuple[Any, Any]], tuple[int, int], int, int]] = {
    # the middle square of the picture in 4 × 4 patches; the text has one token for each
    "LLaVA": (llava, (96, 64), 16, 16),
    # a stretched whole and 1 × 2 tiles
    "LLaVA-NeXT": (llava_next, (128, 64), 48, 48),
    # 160 × 64 fits into 64 × 32 with pads above and below; rows of pads have no token
    "LLaVA-NeXT with pads": (llava_next, (160, 64), 48, 48),
    # 64 × 48 pixels in patches of 4, four of them joined for the text
    "Qwen2-VL": (qwen2, (64, 48), 192, 48),
    "Qwen2.5-VL": (qwen25, (64, 48), 192, 48),
    # two tiles and the whole, 16 patches each; four of them joined for the text
    "Idefics3": (idefics3, (128, 64), 48, 12),
}


def ask(pictures: list[Image.Image]) -> list[dict[str, Any]]:
    return [{"text": WORDS, "image": picture} for picture in pictures]


def streams(atlas: aa.Atlas) -> dict[str, str]:
    """Tower → the stream of its first layer."""
    return {tower.name: tower.layers[0].queries for tower in atlas.towers}


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_tiles_merged_patches_and_placeholders_change_where_the_picture_does(name: str) -> None:
    make, size, *counts = MODELS[name]
    model, processor = make()
    first = aa.capture(model, ask([grey(size)]), tokenizer=processor, progress=False)
    for (tower, stream), count in zip(streams(first).items(), counts, strict=True):
        box = boxes(first, stream)
        there = np.flatnonzero(~np.isnan(box).any(1))
        assert len(there) == count, tower
        chosen = there[:: max(1, count // 12)]
        pictures = [grey(size), *(spotted(size, box[place]) for place in chosen)]
        atlas = aa.capture(model, ask(pictures), tokenizer=processor, progress=False)
        for number, place in enumerate(chosen, start=1):
            hit = _holding(box, box[place])
            for layer in (0, 1):
                found = set(changed(atlas, f"{tower}.L{layer}H0", number))
                assert hit <= found <= _holding(box, box[place], blur=0.07)


def test_each_tile_has_its_own_class_token() -> None:
    model, processor = llava_next()
    atlas = aa.capture(model, ask([grey((128, 64))]), tokenizer=processor, progress=False)
    tokens = atlas.tokens(0, "vision")
    assert tokens[tokens["special"]]["text"].tolist() == ["0:[CLS]", "1:[CLS]", "2:[CLS]"]
    assert tokens["text"].tolist()[1] == "0:0,0" and tokens["text"].tolist()[-1] == "2:3,3"


def _holding(box: Any, spot: Any, blur: float = -0.01) -> set[int]:
    """The tokens whose box has some of the middle half of a spot's box in it.

    Tiles are made smaller by more or less, which blurs the spot by a few pixels of theirs.
    """
    middle, half = (spot[:2] + spot[2:]) / 2, (spot[2:] - spot[:2]) / 4
    low, high = np.maximum(middle - half, 0), np.minimum(middle + half, 1)
    with np.errstate(invalid="ignore"):
        hit = (box[:, :2] < high + blur).all(1) & (box[:, 2:] > low - blur).all(1)
    return set(np.flatnonzero(hit).tolist())


def test_several_pictures_of_one_input_are_told_apart() -> None:
    # 64 × 32 pixels are 8 × 4 tokens of the text, 32 × 48 are 4 × 6
    model, processor = qwen2()
    sizes = [(64, 32), (32, 48)]
    text = "<|vision_start|> <|image_pad|> <|vision_end|> " * 2 + WORDS
    given = {"text": text, "images": [grey(size) for size in sizes]}
    atlas = aa.capture(model, [given], tokenizer=processor, progress=False)
    tokens = atlas.tokens(0, "text")
    assert (tokens["image"] == 0).sum() == 32 and (tokens["image"] == 1).sum() == 24
    assert tokens[tokens["image"] == 1]["row"].max() == 5
    spot = boxes(atlas, "text")[np.flatnonzero(tokens["image"] == 1)[9]]
    other = {"text": text, "images": [grey(sizes[0]), spotted(sizes[1], spot)]}
    both = aa.capture(model, [given, other], tokenizer=processor, progress=False)
    assert changed(both, "text.L0H0", 1) == [1 + 32 + 2 + 9]


def test_words_that_are_written_see_the_picture_too() -> None:
    model, processor = llava()
    atlas = aa.capture(
        model, ask([grey((64, 64))]), tokenizer=processor, generate=3, progress=False
    )
    tokens = atlas.tokens(0, "text")
    assert len(tokens) == 16 + 3 + 2  # the last word was written and not read
    assert (tokens["image"] == 0).sum() == 16 and (~tokens["left"].isna()).sum() == 16
    assert atlas.weights(0, "text.L1H0")[-1, :16].sum() > 0
    assert len(atlas.tokens(0, "vision")) == 17


def test_tokens_after_the_patches_and_unknown_orders_are_asked_of_the_model() -> None:
    # YOLOS puts five tokens of its own after 4 × 4 patches, and one before them
    config = hf.YolosConfig(**{**VISION, "image_size": [32, 32]}, num_detection_tokens=5)
    model, processor = local(hf.YolosModel(config)), stretched(32, 32)
    atlas = aa.capture(model, grey((64, 64)), tokenizer=processor, progress=False)
    tokens = atlas.tokens(0)
    assert tokens["special"].tolist() == [True] + [False] * 16 + [True] * 5
    place = boxes(atlas, "encoder")[7]
    two = [grey((64, 64)), spotted((64, 64), place)]
    assert changed(aa.capture(model, two, tokenizer=processor, progress=False), "L0H0", 1) == [7]
