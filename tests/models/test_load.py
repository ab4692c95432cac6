from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import huggingface_hub
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from attention_atlas.models import locate
from attention_atlas.models.encode import collate, encode
from attention_atlas.models.inputs import Input
from attention_atlas.models.limits import longest
from attention_atlas.models.load import load
from attention_atlas.names.errors import ModelError


def test_a_folder_gives_its_model_with_head_and_tokenizer_in_eval_mode(
    tmp_path: Path, gpt: Any, make_tokenizer: Callable[..., Any]
) -> None:
    gpt.save_pretrained(tmp_path / "mine")
    make_tokenizer().save_pretrained(tmp_path / "mine")
    loaded = load(tmp_path / "mine", device="cpu")
    assert type(loaded.model) is transformers.GPT2LMHeadModel
    assert (loaded.name, loaded.revision, loaded.model.training) == ("mine", None, False)
    tokenizer: Any = loaded.tokenizer
    assert tokenizer.vocab_size == 14 and tokenizer is loaded.processor
    ids = torch.tensor([[4, 5, 6]])
    assert torch.equal(loaded.model(ids).logits, gpt(ids).logits)


def test_half_precision_weights_become_float32_on_a_cpu_unless_asked_otherwise(
    tmp_path: Path, gpt: Any
) -> None:
    gpt.half().save_pretrained(tmp_path)
    assert load(tmp_path, device="cpu").model.dtype == torch.float32
    assert load(tmp_path, device="cpu", dtype="auto").model.dtype == torch.float16
    assert load(tmp_path, device="cpu", dtype="bfloat16").model.dtype == torch.bfloat16


def test_a_model_without_tokenizer_files_has_no_tokenizer(tmp_path: Path, gpt: Any) -> None:
    """transformers would make one out of nothing."""
    gpt.save_pretrained(tmp_path)
    loaded = load(tmp_path, device="cpu")
    assert loaded.processor is None and loaded.tokenizer is None


def test_a_class_that_transformers_does_not_have_falls_back_to_the_plain_model(
    tmp_path: Path, gpt: Any
) -> None:
    gpt.config.architectures = ["GPT2ForEverything"]
    gpt.transformer.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"GPT2Model"', '"GPT2ForEverything"'))
    assert type(load(tmp_path, device="cpu").model) is transformers.GPT2Model


def test_a_live_model_keeps_its_mode_and_device(gpt: Any) -> None:
    loaded = load(gpt.train())
    assert loaded.model is gpt and gpt.training
    assert loaded.name == "GPT2LMHeadModel"


def test_a_live_model_comes_with_its_processor(
    gpt: Any, make_tokenizer: Callable[..., Any]
) -> None:
    tokenizer = make_tokenizer()
    assert load((gpt, tokenizer)).tokenizer is tokenizer
    assert load(gpt, tokenizer).tokenizer is tokenizer


def test_a_processor_may_be_named_and_must_be_there(
    tmp_path: Path, gpt: Any, make_tokenizer: Callable[..., Any]
) -> None:
    make_tokenizer().save_pretrained(tmp_path / "words")
    gpt.config.save_pretrained(tmp_path / "words")
    assert load(gpt, str(tmp_path / "words")).tokenizer.vocab_size == 14
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="has no tokenizer or processor"):
        load(gpt, tmp_path / "empty")


def test_a_built_in_model_is_a_folder_of_the_package(
    tmp_path: Path, gpt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "BUILTIN", tmp_path)
    gpt.save_pretrained(tmp_path / "gpt")
    assert load("builtin:gpt", device="cpu").name == "builtin:gpt"
    with pytest.raises(ModelError, match="called 'cat'; there is builtin:gpt"):
        load("builtin:cat")


@pytest.mark.parametrize("name", locate.builtin_names())
def test_every_built_in_model_loads_in_float32_with_its_processor(name: str) -> None:
    loaded = load(f"builtin:{name}", device="cpu")
    assert loaded.model.dtype == torch.float32
    assert loaded.processor is not None


def test_a_gguf_file_gives_the_model_that_was_written_into_it(tmp_path: Path) -> None:
    rows = write_llama(tmp_path / "tiny.gguf")
    loaded = load(tmp_path / "tiny.gguf", device="cpu")
    assert (loaded.name, longest(loaded)) == ("tiny.gguf", 32)
    assert np.array_equal(loaded.model.get_input_embeddings().weight.detach().numpy(), rows)
    made = encode(loaded, Input("text", text="cat"))
    tensors, _ = collate([made], loaded)
    assert loaded.model(**tensors).logits.shape == (1, len(made.streams["text"]), 262)


def write_llama(path: Path) -> "np.ndarray[Any, Any]":
    random = np.random.default_rng(0)
    tokens = ["<unk>", "<s>", "</s>", "▁", "a", "c", *(f"<0x{i:02X}>" for i in range(256))]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(32)
    writer.add_embedding_length(16)
    writer.add_block_count(1)
    writer.add_feed_forward_length(24)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([2, 3, 3, 1, 1, 1] + [6] * 256)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    shapes = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (16, 16))
    shapes |= {"ffn_gate": (24, 16), "ffn_up": (24, 16), "ffn_down": (16, 24)}
    for name, shape in shapes.items():
        writer.add_tensor(f"blk.0.{name}.weight", random.normal(size=shape).astype(np.float32))
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(16, dtype=np.float32))
    rows = random.normal(size=(len(tokens), 16)).astype(np.float32)
    writer.add_tensor("token_embd.weight", rows)
    writer.add_tensor("output.weight", rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return rows


def test_gguf_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(locate, "find_spec", lambda name: None if name == "gguf" else name)
    with pytest.raises(ModelError, match=r"gguf is not installed; run: pip install"):
        load(tmp_path / "a.gguf")


def test_pickle_weights_are_not_loaded(tmp_path: Path, gpt: Any) -> None:
    gpt.config.save_pretrained(tmp_path)
    torch.save(gpt.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"only pickle weights.*model\.save_pretrained"):
        load(tmp_path)


def test_a_folder_without_config_or_weights_says_which(tmp_path: Path, gpt: Any) -> None:
    with pytest.raises(ModelError, match=r"has no config\.json"):
        load(tmp_path)
    gpt.config.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="has no weights"):
        load(tmp_path)


def test_damaged_weights_are_one_sentence(tmp_path: Path, gpt: Any) -> None:
    gpt.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(tmp_path)


def test_layers_without_weights_are_refused_and_a_new_head_is_not(tmp_path: Path, gpt: Any) -> None:
    """transformers would fill them with random numbers and only log it."""
    gpt.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    left = {name: value for name, value in weights.items() if "h.1.attn.c_attn" not in name}
    save_file(left, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lack 2 tensors of its layers.*h\.1\.attn\.c_attn"):
        load(tmp_path, device="cpu")
    gpt.transformer.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace("GPT2Model", "GPT2ForSequenceClassification"))
    loaded = load(tmp_path, device="cpu")
    assert type(loaded.model) is transformers.GPT2ForSequenceClassification


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("./no/such/folder", "no folder is called ./no/such/folder"),
        (Path("nowhere"), "no folder is called nowhere"),
        ("missing.gguf", "no folder is called missing.gguf"),
        (__file__, "is a file, not a model"),
        (7, "a model of type int cannot be run"),
    ],
)
def test_what_is_no_model_says_so(asked: Any, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        load(asked)


def test_a_device_or_dtype_that_is_not_there_says_so(tmp_path: Path, gpt: Any) -> None:
    gpt.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="no device is called 'gpu'"):
        load(tmp_path, device="gpu")
    with pytest.raises(ModelError, match="cuda:99 was asked for"):
        load(tmp_path, device="cuda:99")
    with pytest.raises(ModelError, match="no dtype is called 'int3'"):
        load(tmp_path, device="cpu", dtype="int3")


def test_a_hub_that_cannot_be_reached_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="the hub cannot be reached; check the network") as caught:
        load("nobody/has-this-model")
    assert "\n" not in str(caught.value)


ANSWER: Any = type("Answer", (), {"headers": {}, "request": None})()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (huggingface_hub.errors.GatedRepoError, "a/b is gated; ask for access"),
        (huggingface_hub.errors.RepositoryNotFoundError, "no model on the hub and no folder"),
        (huggingface_hub.errors.RevisionNotFoundError, "a/b has no such revision"),
    ],
)
def test_what_the_hub_refuses_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, kind: Any, sentence: str
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("as transformers says it") from kind("no", response=ANSWER)

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", fail)
    with pytest.raises(ModelError, match=sentence):
        load("a/b")


def test_a_model_with_code_of_its_own_is_not_run_unasked(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "mine", "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.M"}}'
    )
    (tmp_path / "code.py").write_text("raise SystemExit('this code ran')")
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ModelError, match="brings its own code; read it, then pass trust_remote"):
        load(tmp_path)
