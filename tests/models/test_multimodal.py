from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from PIL import Image

from attention_atlas.models.encode import collate, encode
from attention_atlas.models.inputs import Input, read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.errors import InputError

Make = Callable[..., Any]
WIDTHS = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


@pytest.fixture
def llava(make_tokenizer: Make, pictures: Any) -> Loaded:
    """32 × 32 pixels in patches of 8: a picture is 16 tokens."""
    vision = tf.CLIPVisionConfig(**WIDTHS, image_size=32, patch_size=8)
    text = tf.LlamaConfig(**WIDTHS, vocab_size=20, max_position_embeddings=40)
    config = tf.LlavaConfig(text_config=text, vision_config=vision, image_token_id=4)
    processor = tf.LlavaProcessor(
        pictures,
        make_tokenizer("<image>"),
        patch_size=8,
        vision_feature_select_strategy="default",
        image_token="<image>",
        num_additional_image_tokens=1,
    )
    return load(tf.LlavaForConditionalGeneration(config).eval(), processor)


@pytest.fixture
def whisper() -> Any:
    config = tf.WhisperConfig(
        vocab_size=20, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, num_mel_bins=8,
        max_source_positions=50, max_target_positions=14, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    return tf.WhisperForConditionalGeneration(config).eval()


def seconds(n: float) -> "np.ndarray[Any, Any]":
    return np.sin(np.arange(int(16000 * n)) / 7).astype(np.float32)


def test_a_picture_becomes_pixels_and_no_tokens(vit: Any, tmp_path: Path) -> None:
    # by hand: red is 1, 0, 0; minus 0.5, divided by 0.5
    tf.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    vit.save_pretrained(tmp_path)
    loaded = load(tmp_path, device="cpu")
    made = encode(loaded, Input("image", images=(Image.new("RGB", (50, 70), (255, 0, 0)),)))
    pixels = made.tensors["pixel_values"]
    assert pixels.shape == (1, 3, 32, 32) and made.streams == {}
    assert pixels[0, :, 5, 5].tolist() == pytest.approx([1, -1, -1])


def test_pictures_share_a_batch_in_the_precision_of_the_model(vit: Any, red: Image.Image) -> None:
    pictures = tf.ViTImageProcessorPil(size={"height": 32, "width": 32})
    loaded = load(vit.to(torch.bfloat16), pictures)
    made = encode(loaded, Input("image", images=(red,)))
    tensors, real = collate([made, made], loaded)
    assert tensors["pixel_values"].shape == (2, 3, 32, 32) and real == {}
    assert tensors["pixel_values"].dtype == torch.bfloat16


def test_pictures_of_different_sizes_do_not_share_a_batch(vit: Any) -> None:
    pictures = tf.ViTImageProcessorPil(do_resize=False)
    sizes = ((32, 32), (64, 32))
    loaded = load(vit, pictures)
    items = [encode(loaded, Input("image", images=(Image.new("RGB", s),))) for s in sizes]
    with pytest.raises(ValueError, match="pixel_values differs in size"):
        collate(items, loaded)


def test_two_pictures_in_one_input_are_refused_where_only_one_fits(
    vit: Any, red: Image.Image
) -> None:
    loaded = load(vit, tf.ViTImageProcessorPil(size={"height": 32, "width": 32}))
    with pytest.raises(InputError, match="takes one image at a time and was given 2"):
        encode(loaded, Input("image", images=(red, red)))


def test_a_dual_model_takes_text_and_picture_together(
    clip: Any, pictures: Any, make_tokenizer: Make, red: Image.Image, tmp_path: Path
) -> None:
    tf.CLIPProcessor(pictures, make_tokenizer(ends=True)).save_pretrained(tmp_path)
    clip.save_pretrained(tmp_path)
    loaded = load(tmp_path, device="cpu")
    made = encode(loaded, Input("image-text", text="the cat", images=(red,)))
    assert made.streams["text"].text == ["the", "cat", "</s>"]
    assert made.streams["text"].start == [0, 4, -1]
    tensors, _ = collate([made], loaded)
    assert loaded.model(**tensors).logits_per_image.shape == (1, 1)
    for alone in (Input("text", text="the cat"), Input("image", images=(red,))):
        with pytest.raises(InputError, match="takes text and image together and was given only"):
            encode(loaded, alone)
    long = Input("image-text", text="the cat " * 4, images=(red,))
    with pytest.raises(InputError, match=r"has 9 tokens and .* takes 6"):
        encode(loaded, long)
    cut = encode(loaded, long, truncate=True)
    assert cut.truncated and cut.streams["text"].text[-1] == "</s>"
    assert len(cut.streams["text"]) == 6


def test_the_sides_of_a_dual_model_alone_take_one_kind(
    clip: Any, pictures: Any, make_tokenizer: Make, red: Image.Image
) -> None:
    processor = tf.CLIPProcessor(pictures, make_tokenizer(ends=True))
    seeing, reading = load(clip.vision_model, processor), load(clip.text_model, processor)
    assert set(encode(seeing, Input("image", images=(red,))).tensors) == {"pixel_values"}
    assert "input_ids" in encode(reading, Input("text", text="the cat")).tensors
    with pytest.raises(InputError, match="takes text and was given image; give what it takes"):
        encode(reading, Input("image", images=(red,)))


@pytest.mark.parametrize(
    ("text", "places"),
    [("what is this", [-1] * 16 + [0, 5, 8]), ("what <image> is this", [0] + [-1] * 16 + [13, 16])],
)
def test_words_keep_their_place_around_a_picture(
    llava: Loaded, red: Image.Image, text: str, places: list[int]
) -> None:
    made = encode(llava, Input("image-text", text=text, images=(red,)))
    tokens = made.streams["text"]
    assert tokens.start == places
    assert [t for t, special in zip(tokens.text, tokens.special, strict=True) if not special] == [
        "what", "is", "this",
    ]  # fmt: skip
    tensors, _ = collate([made], llava)
    assert llava.model(**tensors).logits.shape == (1, 19, 20)


def test_a_multimodal_language_model_also_reads_text_or_picture_alone(
    llava: Loaded, red: Image.Image
) -> None:
    assert len(encode(llava, Input("text", text="what is this")).streams["text"]) == 3
    assert len(encode(llava, Input("image", images=(red,))).streams["text"]) == 16


def test_a_text_with_more_places_than_pictures_says_so(llava: Loaded, red: Image.Image) -> None:
    too_many = Input("image-text", text="what <image> <image> is", images=(red,))
    with pytest.raises(InputError, match="has <image> 2 times and 1 were given"):
        encode(llava, too_many)


def test_packed_pictures_need_no_torchvision_and_run_one_at_a_time(
    make_tokenizer: Make, red: Image.Image, tmp_path: Path
) -> None:
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    text = {**WIDTHS, "num_key_value_heads": 1, "vocab_size": 30, "rope_parameters": rope}
    vision = {"depth": 1, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "patch_size": 4}
    config = tf.Qwen2VLConfig(
        text_config={**text, "bos_token_id": 1, "eos_token_id": 2},
        vision_config=vision,
        image_token_id=4,
        video_token_id=5,
        vision_start_token_id=6,
        vision_end_token_id=7,
    )
    marks = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")
    make_tokenizer(*marks).save_pretrained(tmp_path)
    tf.Qwen2VLImageProcessorPil(
        patch_size=4, merge_size=2, min_pixels=64, max_pixels=2000
    ).save_pretrained(tmp_path)
    tf.Qwen2VLForConditionalGeneration(config).save_pretrained(tmp_path)
    loaded = load(tmp_path, device="cpu")
    made = encode(loaded, Input("image-text", text="what is this", images=(red,)))
    # 40 × 32 pixels, patches of 4, four patches a token: 5 × 4 tokens
    assert made.streams["text"].text == ["<|image_pad|>"] * 20 + ["what", "is", "this"]
    tensors, _ = collate([made], loaded)
    assert loaded.model(**tensors).logits.shape == (1, 23, 30)
    with pytest.raises(ValueError, match="pixel_values has no batch axis"):
        collate([made, made], loaded)


def test_a_sound_for_an_encoder_decoder_has_only_decoder_tokens(whisper: Any) -> None:
    features = tf.WhisperFeatureExtractor(feature_size=8, chunk_length=1)
    loaded = load(whisper, features)
    made = encode(loaded, read_inputs(seconds(0.5))[0])
    assert made.tensors["input_features"].shape == (1, 8, 100)
    assert set(made.streams) == {"decoder"}
    guessed = whisper(**made.tensors).logits.argmax(dim=-1)
    assert made.tensors["decoder_input_ids"][0, 0] == 1
    assert guessed[0, :-1].tolist() == made.tensors["decoder_input_ids"][0, 1:].tolist()


def test_a_written_down_sound_is_the_target(whisper: Any, make_tokenizer: Make) -> None:
    loaded = load(whisper, Hearing(tf.WhisperFeatureExtractor(8, chunk_length=1), make_tokenizer()))
    (entry,) = read_inputs({"audio": seconds(0.5), "second": "the cat sat"})
    decoder = encode(loaded, entry).streams["decoder"]
    assert decoder.text == ["<s>", "the", "cat"]
    assert decoder.start == [-1, 0, 4]


class Hearing:
    """A processor in the least sense: something that holds both parts."""

    def __init__(self, feature_extractor: Any, tokenizer: Any) -> None:
        self.feature_extractor, self.tokenizer = feature_extractor, tokenizer


def test_sounds_of_one_length_share_a_batch_and_others_do_not() -> None:
    config = tf.Wav2Vec2Config(
        **WIDTHS, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3),
        num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    loaded = load(tf.Wav2Vec2Model(config).eval(), tf.Wav2Vec2FeatureExtractor())
    half, same, more = (encode(loaded, read_inputs(seconds(n))[0]) for n in (0.1, 0.1, 0.2))
    assert collate([half, same], loaded)[0]["input_values"].shape == (2, 1600)
    with pytest.raises(ValueError, match="input_values differs in size"):
        collate([half, more], loaded)


def test_a_model_says_what_it_takes_instead(gpt: Any, vit: Any, make_tokenizer: Make) -> None:
    with pytest.raises(InputError, match="GPT2LMHeadModel takes text and was given image"):
        encode(load(gpt, make_tokenizer()), Input("image", images=(Path("a.png"),)))
    with pytest.raises(InputError, match="ViTModel takes image and was given text"):
        encode(load(vit, make_tokenizer()), Input("text", text="the cat"))
    with pytest.raises(InputError, match="takes text and was given sound"):
        encode(load(gpt, make_tokenizer()), read_inputs(seconds(0.1))[0])
