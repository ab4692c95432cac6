"""Real trained models: what the atlas gives is what the model itself returns."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

import attention_atlas as aa
from tests.places import minilm, smollm2

TEXTS = [
    "The doctor asked the nurse a question about her patient, and she answered it at once.",
    "Mathematics is difficult because it requires not only logic but also imagination.",
    "Rain.",
    'She said: "I counted 12, 24 and 36 sheep — no more, no less."',
]


def own_attention(model: Any, tokenizer: Any, text: str) -> list[np.ndarray[Any, Any]]:
    """The model's own maps for one text, unpadded, one (H, N, N) a layer."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    return [one[0].numpy() for one in out.attentions]


def worst_difference(atlas: aa.Atlas, number: int, own: list[np.ndarray[Any, Any]]) -> float:
    assert len(own) == len(atlas.towers[0].layers)
    return max(
        float(np.abs(atlas.layer_weights(number, layer) - weights).max())
        for layer, weights in enumerate(own)
    )


def test_minilm_is_captured_with_the_weights_it_returns_itself(tmp_path: Path) -> None:
    atlas = aa.capture(minilm(), TEXTS, path=tmp_path / "minilm.atlas", progress=False)
    assert atlas.receipt.exact and atlas.receipt.how == "named"
    assert atlas.receipt.worst_error < 1e-5
    assert atlas.receipt.run_error is not None and atlas.receipt.run_error < 1e-5
    model = AutoModel.from_pretrained(minilm()).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm())
    for number, text in enumerate(TEXTS):
        assert worst_difference(atlas, number, own_attention(model, tokenizer, text)) < 1e-3


def test_minilm_kept_in_float32_is_exact_to_1e_5(tmp_path: Path) -> None:
    atlas = aa.capture(minilm(), TEXTS, keep=("weights",), progress=False)
    model = AutoModel.from_pretrained(minilm()).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm())
    for number, text in enumerate(TEXTS):
        assert worst_difference(atlas, number, own_attention(model, tokenizer, text)) < 1e-5


@pytest.mark.full
def test_smollm2_is_captured_with_the_weights_it_returns_itself() -> None:
    folder, name = smollm2().rsplit("/", 1)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    atlas = aa.capture(model, TEXTS, tokenizer, progress=False)
    assert atlas.receipt.exact and atlas.receipt.worst_error < 1e-5
    (tower,) = atlas.towers
    assert (tower.role, tower.depth) == ("causal", 30)
    assert {(layer.heads, layer.groups, layer.width) for layer in tower.layers} == {(9, 3, 64)}
    for number, text in enumerate(TEXTS):
        assert worst_difference(atlas, number, own_attention(model, tokenizer, text)) < 1e-3


@pytest.mark.parametrize("name", ["builtin:gpt", "builtin:bert", "builtin:vit"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_built_in_models_are_exact_in_every_precision(name: str, dtype: str) -> None:
    receipt = aa.check(name, dtype=dtype)
    assert receipt.exact
    assert receipt.dtype == dtype
    # 1e-5, or four times the step of the half precision type
    steps = {"float32": 1e-5, "float16": 4 * 2**-10, "bfloat16": 4 * 2**-7}
    assert receipt.worst_error <= receipt.bound == pytest.approx(steps[dtype])


def repeated_random_tokens(dice: torch.Generator) -> torch.Tensor:
    half = torch.randint(1, 4096, (1, 50), generator=dice)
    return torch.cat([torch.zeros(1, 1, dtype=torch.long), half, half], 1)


def test_builtin_gpt_has_an_induction_head_and_a_previous_token_head() -> None:
    dice = torch.Generator().manual_seed(0)
    inputs: list[Any] = [{"input_ids": repeated_random_tokens(dice)} for _ in range(4)]
    repeats = aa.capture("builtin:gpt", inputs, progress=False)
    text = aa.capture("builtin:gpt", TEXTS[:2], progress=False)
    induction, previous = {}, {}
    repeat = np.arange(1, 49)
    for head in repeats.heads()["head"]:
        # Token 51 + i repeats token 1 + i; what followed that is token 2 + i.
        induction[head] = np.mean(
            [repeats.weights(n, head)[51 + repeat, 2 + repeat] for n in range(4)]
        )
        previous[head] = np.mean([np.diagonal(text.weights(n, head), -1).mean() for n in (0, 1)])
    assert max(induction.values()) > 0.8
    assert max(previous.values()) > 0.4
