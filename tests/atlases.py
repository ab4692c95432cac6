"""Small atlases for tests of what is served and shown: real built-in models, one random seq2seq."""

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import attention_atlas as aa

SENTENCE = "The farmer offered the traveller his horse because he was tired."
OTHER = "The farmer offered the traveller her horse because she was tired."
PAIR = {"text": "The cat sat on the mat.", "second": "The dog lay on the rug."}
_WORDS = ["she", "sees", "the", "small", "elephant", "sie", "sieht", "den", "kleinen", "elefanten"]


def gpt(folder: Path) -> aa.Atlas:
    return aa.capture("builtin:gpt", [SENTENCE, OTHER], path=folder / "gpt.atlas", progress=False)


def bert(folder: Path) -> aa.Atlas:
    return aa.capture("builtin:bert", [SENTENCE, PAIR], path=folder / "bert.atlas", progress=False)


def bare(folder: Path) -> aa.Atlas:
    """An atlas that holds weights and no vectors."""
    path = folder / "bare.atlas"
    return aa.capture("builtin:gpt", SENTENCE, path=path, keep=("weights",), progress=False)


def seq2seq(folder: Path) -> aa.Atlas:
    """An encoder of two layers and a decoder of three, with random weights."""
    model, tokenizer = marian()
    given = {"text": "she sees the small elephant", "second": "sie sieht den kleinen elefanten"}
    path = folder / "seq2seq.atlas"
    return aa.capture(model, [given], tokenizer=tokenizer, path=path, progress=False)


def marian() -> tuple[Any, Any]:
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=20, d_model=16, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, pad_token_id=0,
        eos_token_id=1, decoder_start_token_id=0, max_position_embeddings=32,
    )  # fmt: skip
    return transformers.MarianMTModel(config).eval(), word_tokenizer()


def word_tokenizer() -> Any:
    vocabulary = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *_WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
