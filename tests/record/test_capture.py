"""Capture of every kind of input, and what is in the atlas after it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

import attention_atlas as aa
from attention_atlas.models.locate import BUILTIN
from attention_atlas.store.manifest import Manifest
from tests.tolerance import STORED, reading_tolerance

SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}


def lively(model: PreTrainedModel) -> PreTrainedModel:
    """Weights large enough that attention is not even."""
    dice = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.copy_(torch.randn(weight.shape, generator=dice) * 0.15)
    return model


def ids(*numbers: int) -> dict[str, Any]:
    return {"input_ids": torch.tensor([numbers])}


def all_heads(a: aa.Atlas) -> list[str]:
    return list(a.heads()["head"])


def largest_gap(a: aa.Atlas, b: aa.Atlas) -> float:
    return max(float(np.abs(a.weights(0, h) - b.weights(0, h)).max()) for h in all_heads(a))


def test_padding_never_reaches_an_atlas() -> None:
    texts = ["A much longer sentence than the other one, by far.", "Short."]
    together = aa.capture("builtin:bert", texts, batch_size=2, progress=False)
    alone = aa.capture("builtin:bert", texts[1], progress=False)
    assert together.tokens(1)["text"].tolist() == alone.tokens(0)["text"].tolist()
    assert "[PAD]" not in set(together.tokens()["text"])
    for head in all_heads(alone):
        np.testing.assert_allclose(together.weights(1, head), alone.weights(0, head), atol=STORED)


def test_token_numbers_run_through_the_whole_atlas_and_vectors_follow_them() -> None:
    atlas = aa.capture("builtin:gpt", ["One two.", "Three.", "Four five six."], progress=False)
    assert atlas.tokens()["token"].tolist() == list(range(len(atlas.tokens())))
    joined = np.concatenate([atlas.queries("L2H1", input=n) for n in range(3)])
    np.testing.assert_array_equal(atlas.queries("L2H1"), joined)


def test_some_rows_are_the_same_as_those_rows_of_the_whole() -> None:
    atlas = aa.capture("builtin:gpt", "The cat sat on the mat.", progress=False)
    whole = atlas.weights(0, "L3H2")
    some = atlas.weights(0, "L3H2", rows=[4, 1, -1])
    assert np.abs(some - whole[[4, 1, -1]]).max() <= reading_tolerance(atlas, 0, "L3H2")


def test_a_pair_knows_where_its_second_sentence_starts() -> None:
    atlas = aa.capture("builtin:bert", ("A cat sat.", "A dog ran."), progress=False)
    tokens = atlas.tokens(0)
    boundary = atlas.inputs()["boundary"][0]
    assert tokens["segment"].tolist().index(1) == boundary
    assert tokens["text"].tolist()[boundary - 1] == "[SEP]"


def test_a_users_columns_come_along(tmp_path: Path) -> None:
    (tmp_path / "corpus.csv").write_text("text,year,kind\nA cat sat.,1900,pet\nA lion.,1950,wild\n")
    atlas = aa.capture("builtin:gpt", tmp_path / "corpus.csv", progress=False)
    frame = atlas.inputs()
    assert frame["year"].tolist() == [1900, 1950]
    assert frame["kind_"].tolist() == ["pet", "wild"]  # our own column is called kind


def test_generated_tokens_have_the_attention_that_one_pass_over_them_gives() -> None:
    model = lively(LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=2)))
    written = aa.capture(model, [ids(5, 17, 40, 8)], generate=6, progress=False)
    tokens = written.tokens(0)["id"].tolist()
    assert len(tokens) == 4 + 5  # the sixth was written but never read
    assert written.inputs()["prompt"][0] == 4
    once = aa.capture(model, [ids(*tokens)], progress=False)
    assert largest_gap(written, once) < 1e-3


def test_generation_with_a_sliding_window_cache_hides_what_the_cache_dropped() -> None:
    config = MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=4)
    model = lively(MistralForCausalLM(config))
    written = aa.capture(model, [ids(5, 17, 40, 8, 9, 10)], generate=5, progress=False)
    seen = (written.weights(0, "L1H0") > 0).sum(-1)
    assert seen.tolist() == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]


def test_an_encoder_decoder_writes_into_its_decoder_stream() -> None:
    model = lively(
        T5ForConditionalGeneration(
            T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
                     decoder_start_token_id=0)
        )
    )  # fmt: skip
    atlas = aa.capture(model, [ids(5, 17, 40)], generate=4, progress=False)
    assert [tower.name for tower in atlas.towers] == ["encoder", "decoder", "cross"]
    written = atlas.tokens(0, "decoder")["id"].tolist()
    assert atlas.weights(0, "cross.L1H2").shape == (len(written), 3)
    given = {**ids(5, 17, 40), "decoder_input_ids": torch.tensor([written])}
    assert largest_gap(atlas, aa.capture(model, [given], progress=False)) < 1e-3


def test_images_are_stored_with_their_patches_and_pictures(tmp_path: Path) -> None:
    for name, colour in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (80, 64), colour).save(tmp_path / name)
    atlas = aa.capture("builtin:vit", tmp_path, path=tmp_path / "x.atlas", progress=False)
    tokens = atlas.tokens(0)
    assert tokens["text"].tolist()[0] == "[CLS]" and bool(tokens["special"].iloc[0])
    assert tokens["row"].tolist()[1:9] == [0] * 8 and tokens["column"].tolist()[1:9] == list(
        range(8)
    )
    picture = Image.open(atlas.path / atlas.inputs()["images"][1][0])
    assert picture.getpixel((3, 3)) == (0, 0, 255)


def test_a_models_mode_device_and_implementation_are_as_before() -> None:
    model = BertModel(BertConfig(**SMALL)).train()
    model.encoder.layer[0].eval()
    before = model.config._attn_implementation
    aa.capture(model, [ids(1, 2, 3)], progress=False)
    assert (
        model.training and not model.encoder.layer[0].training and model.encoder.layer[1].training
    )
    assert model.config._attn_implementation == before
    hooks = [
        hook
        for module in model.modules()
        for hook in [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    ]
    assert not [hook for hook in hooks if hook.__module__.startswith("attention_atlas")]


def test_large_vectors_are_stored_in_float32_where_fp16_would_be_too_coarse() -> None:
    model = lively(BertModel(BertConfig(**SMALL)))
    # One neuron of all keys is large, as massive activations are. In float16 20 has steps of 2⁻⁶:
    # logits are off by up to 3 · 2⁻⁷ / √8 = 0.008, weights by more than 1e-3. In float32 logits of
    # 20 keep weights within 1e-5 on every machine (tests/tolerance.py).
    with torch.no_grad():
        for layer in model.encoder.layer[:1]:
            layer.attention.self.key.bias[0] = 20.0
            layer.attention.self.query.bias[0] = 3.0
    atlas = aa.capture(model, [ids(1, 7, 3, 9, 30)], progress=False)
    stored = {one.layer: one.stored_error for one in atlas.receipt.layers}
    shard = atlas.shard(0)
    assert shard.tensor("encoder.L0.query").dtype == np.float32
    assert shard.tensor("encoder.L1.query").dtype == np.float16
    assert all(error is not None and error < 1e-3 for error in stored.values())


def test_values_beyond_the_range_of_fp16_survive() -> None:
    model = lively(BertModel(BertConfig(**SMALL)))
    with torch.no_grad():
        model.encoder.layer[0].attention.self.value.bias[0] = 1e6
    atlas = aa.capture(model, [ids(1, 7, 3)], progress=False)
    np.testing.assert_allclose(atlas.values("L0H0")[:, 0], 1e6, rtol=1e-4)


def test_without_queries_the_weights_say_what_is_missing() -> None:
    atlas = aa.capture("builtin:gpt", "A cat.", keep=("key", "value"), progress=False)
    with pytest.raises(aa.StoreError, match="captured without queries"):
        atlas.weights(0, "L0H0")


def test_an_unknown_argument_to_attention_means_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    model = lively(LlamaForCausalLM(LlamaConfig(**SMALL)))
    attention = model.model.layers[1].self_attn
    plain = attention.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        return plain(*args, **kwargs, temperature=2.0)

    monkeypatch.setattr(attention, "forward", forward)
    receipt = aa.check(model)
    unsure = [one for one in receipt.layers if not one.exact]
    # The tracer, which needs no arguments, may still prove it; but the named way must not claim to.
    assert receipt.how == "trace" or "temperature" in unsure[0].reason


def test_heads_are_told_with_their_groups() -> None:
    model = lively(LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=2)))
    atlas = aa.capture(model, [ids(1, 2, 3)], progress=False)
    assert atlas.heads()["group"].tolist() == [0, 0, 1, 1] * 2
    np.testing.assert_array_equal(atlas.keys("L0H0"), atlas.keys("L0H1"))
    assert not np.array_equal(atlas.keys("L0H1"), atlas.keys("L0H2"))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("5.1", "write layer and head from zero"),
        ("L9H0", "layers 0 to 5"),
        ("L0H9", "heads 0 to 5"),
        ("cross.L0H0", "no tower is named 'cross'"),
    ],
)
def test_a_head_that_does_not_exist_is_named(name: str, says: str) -> None:
    atlas = aa.capture("builtin:gpt", "A cat.", progress=False)
    with pytest.raises(aa.PickError, match=says):
        atlas.weights(0, name)


def test_an_atlas_opens_where_there_is_no_torch(tmp_path: Path) -> None:
    aa.capture("builtin:gpt", "A cat sat.", path=tmp_path / "x.atlas", progress=False)
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['transformers'] = None\n"
        "import attention_atlas as aa\n"
        f"print(aa.open({str(tmp_path / 'x.atlas')!r}).weights(0, 'L0H0').sum())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(
        len(Manifest.read(tmp_path / "x.atlas").streams) * 5, abs=1
    )


def test_a_live_tokenizer_and_model_need_no_name() -> None:
    tokenizer = AutoTokenizer.from_pretrained(BUILTIN / "gpt")
    config = LlamaConfig(**{**SMALL, "vocab_size": len(tokenizer)})
    atlas = aa.capture((lively(LlamaForCausalLM(config)), tokenizer), "A cat.", progress=False)
    assert atlas.manifest.model == "LlamaForCausalLM"
    assert atlas.tokens(0)["text"].tolist()[1] == "A"
