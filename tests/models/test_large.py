"""Models that are split, quantised or have an adapter are captured as exactly as others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers

import attention_atlas as aa
from attention_atlas.models import large
from attention_atlas.models.load import load
from attention_atlas.names.errors import ModelError

TEXTS = ["the cat sat on the mat", "what is this"]


@pytest.fixture
def llama(tmp_path: Path, make_tokenizer: Any) -> Path:
    """A folder with a small rotary model with groups, and its tokenizer."""
    config = transformers.LlamaConfig(
        vocab_size=14, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0,
    )  # fmt: skip
    folder = tmp_path / "llama"
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def adapter(tmp_path: Path, llama: Path) -> Path:
    """A folder with a LoRA adapter that changes queries and keys a lot."""
    import peft  # it takes seconds, and most tests here do without

    base = transformers.LlamaForCausalLM.from_pretrained(llama)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "k_proj"], init_lora_weights=False)
    wrapped = peft.get_peft_model(base, config)
    wrapped.save_pretrained(str(tmp_path / "lora"))
    return tmp_path / "lora"


@pytest.mark.full
def test_a_model_that_transformers_spreads_is_captured_as_if_it_were_not(llama: Path) -> None:
    plain = aa.capture(llama, TEXTS, device="cpu", progress=False)
    spread = aa.capture(llama, TEXTS, device="cpu", device_map="auto", progress=False)
    assert spread.manifest.receipt.exact
    assert np.array_equal(plain.weights(0, "L1H3"), spread.weights(0, "L1H3"))


@pytest.mark.full
def test_a_model_with_layers_on_disk_is_captured_as_if_it_were_in_memory(
    llama: Path, tmp_path: Path
) -> None:
    loaded = load(llama, device="cpu")
    layers = {"model.embed_tokens": "cpu", "model.norm": "cpu", "model.rotary_emb": "cpu"}
    layers |= {"lm_head": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk"}
    split = transformers.LlamaForCausalLM.from_pretrained(
        llama, device_map=layers, offload_folder=str(tmp_path / "offload")
    )
    assert split.model.layers[1].self_attn.q_proj.weight.is_meta
    atlas = aa.capture((split, loaded.tokenizer), TEXTS, progress=False)
    plain = aa.capture((loaded.model, loaded.tokenizer), TEXTS, progress=False)
    assert atlas.manifest.receipt.exact
    assert np.array_equal(plain.weights(0, "L1H3"), atlas.weights(0, "L1H3"))


@pytest.mark.full
def test_an_adapter_by_name_attends_as_a_model_with_the_adapter_merged_into_it(
    llama: Path, adapter: Path
) -> None:
    import peft

    base = transformers.LlamaForCausalLM.from_pretrained(llama)
    merged: Any = peft.PeftModel.from_pretrained(base, adapter).merge_and_unload()
    tokenizer = load(llama, device="cpu").tokenizer
    wanted = aa.capture((merged, tokenizer), TEXTS, progress=False)
    atlas = aa.capture(llama, TEXTS, device="cpu", adapter=str(adapter), progress=False)
    without = aa.capture(llama, TEXTS, device="cpu", progress=False)
    assert atlas.manifest.receipt.exact
    assert atlas.manifest.model == "llama + lora"
    # Both add B·A·x to W·x, in another order; stored vectors are rounded to half precision.
    difference = np.abs(atlas.weights(0, "L1H3") - wanted.weights(0, "L1H3")).max()
    assert difference < 1e-3
    assert np.abs(without.weights(0, "L1H3") - wanted.weights(0, "L1H3")).max() > 50 * difference


@pytest.mark.full
@pytest.mark.parametrize("bits", [8, 4])
def test_weights_of_few_bits_are_captured_exactly(llama: Path, bits: int) -> None:
    pytest.importorskip("bitsandbytes")
    atlas = aa.capture(llama, TEXTS, device="cpu", bits=bits, progress=False)
    assert atlas.manifest.receipt.exact
    whole = aa.capture(llama, TEXTS, device="cpu", progress=False)
    changed = np.abs(whole.weights(0, "L1H3") - atlas.weights(0, "L1H3")).max()
    assert 0 < changed < 0.2  # rounded weights attend a little otherwise


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"device_map": "half"}, "no device map is called 'half'; give auto"),
        ({"bits": 3}, "weights of 3 bits were asked for; give 4 or 8"),
        ({"adapter": Path("nowhere")}, "no folder is called nowhere"),
    ],
)
def test_what_is_not_possible_says_so(llama: Path, asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        load(llama, device="cpu", **asked)


def test_a_loaded_model_is_not_loaded_otherwise(llama: Path) -> None:
    model = load(llama, device="cpu").model
    with pytest.raises(ModelError, match="taken as it is"):
        load(model, bits=8)


def test_pickle_adapters_and_adapters_without_a_model_are_refused(
    llama: Path, adapter: Path
) -> None:
    with pytest.raises(ModelError, match="lora is an adapter; give the model"):
        load(adapter)
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(ModelError, match=r"has no adapter_model\.safetensors"):
        load(llama, device="cpu", adapter=adapter)


def test_a_package_that_is_missing_is_named(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "find_spec", lambda name: None if name == "peft" else object())
    with pytest.raises(ModelError, match=r"peft, which is not installed; run: pip install"):
        load(llama, adapter="x/y")
