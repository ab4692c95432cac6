"""Where do a million tokens of one head come from?

A model of one layer and one head, made here, reads made-up texts. Words belong to topics, and a
text keeps to one topic for some sentences, so queries and keys form clusters of topics and words,
and positions turn slowly through a plane of their own, as in trained models.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import attention_atlas as aa

WORDS, TOPICS, WIDTH, LENGTH = 2000, 40, 32, 500


def make_atlas(folder: Path, tokens: int, length: int = LENGTH) -> aa.Atlas:
    """Capture so many tokens (a multiple of `length`) of the model; returns the atlas."""
    draw = np.random.default_rng(0)
    texts = [_text(draw, length) for _ in range(tokens // length)]
    return aa.capture(
        _model(), texts, tokenizer=_tokenizer(), path=folder, keep=("query", "key"), progress=False
    )


def _text(draw: np.random.Generator, length: int) -> str:
    """Write some sentences of one topic after another; a third of the words belong to any topic."""
    parts = -(-length // 50)
    topic = draw.integers(0, TOPICS, parts).repeat(50)[:length]
    common = draw.random(length) < 0.33
    rank = np.minimum(draw.zipf(1.4, length) - 1, WORDS // TOPICS - 1)
    words = np.where(common, rank * TOPICS, rank * TOPICS + topic)
    return " ".join(f"w{word}" for word in words)


def _tokenizer() -> Any:
    inner = Tokenizer(models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="w0")


def _model() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=1024, n_embd=WIDTH, n_layer=1, n_head=1,
        bos_token_id=0, eos_token_id=0, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
    )  # fmt: skip
    model = transformers.GPT2Model(config).eval()
    with torch.no_grad():
        topic = torch.randn(TOPICS, WIDTH)[torch.arange(WORDS) % TOPICS]
        model.wte.weight.copy_(topic + 0.5 * torch.randn(WORDS, WIDTH))
        turn = torch.arange(1024)[:, None] / 40 * torch.logspace(0, -1, WIDTH // 2)
        model.wpe.weight.copy_(0.6 * torch.cat([turn.sin(), turn.cos()], 1))
        model.h[0].attn.c_attn.weight.normal_(0, 1 / math.sqrt(WIDTH))
    return model
