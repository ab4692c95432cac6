"""Are sounds captured as texts and pictures are: written on, resampled, checked, named by time?"""

from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import attention_atlas as aa
from attention_atlas.models.encode import encode
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import load

FEATURES = tf.WhisperFeatureExtractor(feature_size=8, chunk_length=1)


def whisper() -> Any:
    """A small Whisper whose generation is configured as that of the real multilingual ones."""
    torch.manual_seed(0)
    config = tf.WhisperConfig(
        vocab_size=40, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, num_mel_bins=8,
        max_source_positions=50, max_target_positions=30, pad_token_id=2, bos_token_id=2,
        eos_token_id=2, decoder_start_token_id=3,
    )  # fmt: skip
    model = tf.WhisperForConditionalGeneration(config).eval()
    model.generation_config = tf.GenerationConfig(
        begin_suppress_tokens=[1, 2], suppress_tokens=[0, 5], decoder_start_token_id=3,
        eos_token_id=2, pad_token_id=2, bos_token_id=2, is_multilingual=True,
        lang_to_id={"<|en|>": 4, "<|fr|>": 5}, task_to_id={"transcribe": 6, "translate": 7},
        no_timestamps_token_id=8, prev_sot_token_id=9, return_timestamps=False,
        max_initial_timestamp_index=5, max_length=30,
    )  # fmt: skip
    return model


def sound(seconds: float, rate: int = 16000) -> "np.ndarray[Any, Any]":
    """A tone of 440 Hz."""
    return np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate).astype(np.float32)


def test_a_whisper_writes_on_and_its_attention_is_that_of_one_pass_over_what_it_wrote() -> None:
    model = whisper()
    written = aa.capture((model, FEATURES), [sound(0.5)], generate=6, progress=False)
    ids = written.tokens(0, "decoder")["id"].tolist()
    assert ids[0] == 3 and len(ids) == 6  # the start token and five more; the sixth was not read
    assert written.inputs()["prompt"][0] == 1
    features = FEATURES(sound(0.5), sampling_rate=16000, return_tensors="pt")["input_features"]
    given = {"input_features": features, "decoder_input_ids": torch.tensor([ids])}
    once = aa.capture(model, [given], progress=False)
    for head in written.heads()["head"]:
        np.testing.assert_allclose(
            written.weights(0, head), once.weights(0, head), atol=1e-3
        )  # what fp16 may cost


def test_a_sound_of_another_rate_is_resampled_and_that_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    loaded = load(tf.Wav2Vec2Model(wav2vec2()).eval(), tf.Wav2Vec2FeatureExtractor())
    (fast,) = read_inputs({"audio": sound(0.5, 44100), "rate": 44100})
    found = encode(loaded, fast).tensors["input_values"][0].numpy()
    assert "44100 samples a second" in capsys.readouterr().err
    # The same tone, sampled at 16000 a second and brought to mean 0 and deviation 1 as the
    # extractor does: its amplitude is √2. The filter (a Kaiser window of β = 5) ripples by 0.002,
    # in the tone and in its deviation, and has no whole tone to work on at both ends.
    plain = sound(0.5)
    plain = (plain - plain.mean()) / plain.std()
    inner = slice(200, -200)
    assert len(found) == len(plain)
    np.testing.assert_allclose(found[inner], plain[inner], atol=2 * 0.002 * 2**0.5)


def wav2vec2() -> Any:
    return tf.Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        conv_dim=(8, 8), conv_stride=(80, 4), conv_kernel=(160, 4), num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )  # fmt: skip


def test_frames_are_named_by_their_time() -> None:
    model = tf.Wav2Vec2Model(wav2vec2()).eval()  # 80 · 4 samples of 16000 a second: 0.02 s
    atlas = aa.capture((model, tf.Wav2Vec2FeatureExtractor()), [sound(0.5)], progress=False)
    assert atlas.tokens(0)["text"].tolist()[:3] == ["0.00 s", "0.02 s", "0.04 s"]
    heard = aa.capture((whisper(), FEATURES), [sound(0.5)], progress=False)
    frames = heard.tokens(0, "encoder")["text"].tolist()  # 50 for a second, as the real one
    assert len(frames) == 50 and frames[:2] == ["0.00 s", "0.02 s"] and frames[-1] == "0.98 s"


@pytest.mark.parametrize("make", [whisper, lambda: tf.Wav2Vec2Model(wav2vec2())])
def test_check_makes_up_a_sound(make: Any) -> None:
    model = make().eval()
    features = FEATURES if "Whisper" in type(model).__name__ else tf.Wav2Vec2FeatureExtractor()
    assert aa.check(model, tokenizer=features, device="cpu").exact
