"""The limit is right when the model runs at it and fails one token further."""

from typing import Any

import pytest
import torch
import transformers as tf

from attention_atlas.models.limits import longest, longest_target
from attention_atlas.models.load import load

WIDTHS = {
    "vocab_size": 20,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
FOUR = {"vocab_size": 20, "n_embd": 16, "n_layer": 1, "n_head": 2}
SIDES = {
    "vocab_size": 20,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
}
LIMITED: dict[str, Any] = {
    "bert": lambda: tf.BertModel(tf.BertConfig(**WIDTHS, max_position_embeddings=20)),
    "roberta": lambda: tf.RobertaModel(tf.RobertaConfig(**WIDTHS, max_position_embeddings=22)),
    "mpnet": lambda: tf.MPNetModel(tf.MPNetConfig(**WIDTHS, max_position_embeddings=22)),
    "gpt2": lambda: tf.GPT2Model(tf.GPT2Config(**FOUR, n_positions=20)),
    "mpt": lambda: tf.MptModel(
        tf.MptConfig(vocab_size=20, d_model=16, n_layers=1, n_heads=2, max_seq_len=20)
    ),
    "bart": lambda: tf.BartModel(tf.BartConfig(**SIDES, max_position_embeddings=20)),
}
UNLIMITED: dict[str, Any] = {
    "t5": lambda: tf.T5EncoderModel(
        tf.T5Config(vocab_size=20, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    ),
    "bloom": lambda: tf.BloomModel(
        tf.BloomConfig(vocab_size=20, hidden_size=16, n_layer=1, n_head=2)
    ),
}


def runs(model: Any, n: int) -> bool:
    ids = torch.full((1, n), 7)
    extra = {"decoder_input_ids": ids[:, :1]} if model.config.is_encoder_decoder else {}
    try:
        with torch.no_grad():
            model.eval()(input_ids=ids, **extra)
    except (IndexError, RuntimeError):
        return False
    return True


@pytest.mark.parametrize("name", LIMITED)
def test_a_model_runs_at_its_limit_and_not_beyond(name: str) -> None:
    model = LIMITED[name]()
    assert longest(load(model)) == 20
    assert runs(model, 20) and not runs(model, 21)


@pytest.mark.parametrize("name", UNLIMITED)
def test_relative_positions_have_no_limit(name: str) -> None:
    model = UNLIMITED[name]()
    assert longest(load(model)) is None
    assert runs(model, 700)


def test_a_tokenizer_is_asked_where_the_config_says_nothing(make_tokenizer: Any) -> None:
    model = tf.XLNetModel(
        tf.XLNetConfig(vocab_size=20, d_model=16, n_layer=1, n_head=2, d_inner=16)
    )
    assert longest(load(model, make_tokenizer())) is None  # tokenizers say 1e30 for none
    assert longest(load(model, make_tokenizer(model_max_length=64))) == 64


def test_the_text_side_of_a_dual_model_has_the_limit(clip: Any) -> None:
    assert longest(load(clip)) == 6


def test_a_decoder_has_its_own_limit() -> None:
    whisper = tf.WhisperConfig(
        **SIDES, max_source_positions=50, max_target_positions=14, pad_token_id=0
    )
    assert longest_target(load(tf.WhisperModel(whisper))) == 14
