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


def shaped(folder: Path, layers: int, heads: int, width: int = 8) -> aa.Atlas:
    """A random Gemma of so many layers and heads, the heads so many neurons wide, with its map."""
    torch.manual_seed(0)
    config = transformers.GemmaConfig(
        vocab_size=20, hidden_size=32, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=1, head_dim=width, intermediate_size=32, max_position_embeddings=32,
        pad_token_id=0, bos_token_id=1, eos_token_id=1,
    )  # fmt: skip
    model = transformers.GemmaModel(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.15)  # attention far from even
    texts = ["she sees the small elephant", "the small elephant sees the den"]
    path = folder / f"{layers}x{heads}.atlas"
    atlas = aa.capture(model, texts, tokenizer=word_tokenizer(), path=path, progress=False)
    atlas.layout("pca", progress=False)
    return atlas


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
