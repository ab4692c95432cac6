"""BertViz's tensors and TransformerLens' caches as atlases, and weights as plain arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import attention_atlas as aa
from tests.ways.made import TOKENS, Floats, rows

N = len(TOKENS)


# BertViz -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["torch", "numpy", "half"])
def test_tensors_become_an_atlas_of_their_weights(kind: str, tmp_path: Path) -> None:
    layers: list[Any] = [rows(3, N, N, seed)[None] for seed in range(2)]
    given = layers
    if kind != "numpy":
        given = [torch.tensor(one) for one in layers]
    if kind == "half":
        given = [one.to(torch.bfloat16) for one in given]
        layers = [one.float().numpy() for one in given]
    atlas = aa.from_bertviz(tuple(given), TOKENS, path=tmp_path / "x.atlas")
    for layer in range(2):
        for head in range(3):
            assert (atlas.weights(0, f"L{layer}H{head}") == layers[layer][0, head]).all()
    assert aa.open(tmp_path / "x.atlas").tokens(0)["text"].tolist() == TOKENS
    assert atlas.tokens(0)["special"].tolist() == [True] + [False] * (N - 1)


def test_such_an_atlas_is_shown_measured_and_exported_and_says_what_it_lacks(
    tmp_path: Path,
) -> None:
    weights = rows(2, N, N, causal=True)
    atlas = aa.from_bertviz([weights[None]], TOKENS, sentence_b_start=3)
    assert atlas.receipt.line == "weights as they were given; no receipt"
    assert atlas.towers[0].role == "causal" and atlas.inputs()["boundary"].tolist() == [3]
    with pytest.raises(aa.StoreError, match="without queries"):
        atlas.queries(head="L0H0")
    with pytest.raises(aa.AtlasError):
        atlas.layout("pca", progress=False)
    atlas.measure(progress=False)
    heads = atlas.heads().set_index("head")
    assert heads.loc["L0H1", "previous"] == pytest.approx(
        np.mean([weights[1, i, i - 1] for i in range(1, N)]), abs=1e-6
    )
    # "the" and "cat" come twice: after the first "the" stood "cat", after the first "cat" "saw".
    assert heads.loc["L0H0", "induction"] == pytest.approx(
        (weights[0, 4, 2] + weights[0, 5, 3]) / 2, abs=1e-6
    )
    folder = aa.to_headvis(atlas, tmp_path / "headvis")
    assert (folder / "heads" / "L0H1.json").is_file()
    about = aa.head_view(atlas).subject
    from attention_atlas.page.answers.about import about as say

    told = say(about)
    assert not told.exact and told.receipt_line == atlas.receipt.line
    assert "made from BertViz's tensors, not captured here" in told.notes
    assert not any("is not shown" in note for note in told.notes)


def test_the_three_towers_of_an_encoder_decoder() -> None:
    source, target = ["she", "sees", "</s>"], ["sie", "sieht"]
    atlas = aa.from_bertviz(
        encoder_attention=[rows(2, 3, 3)[None]], decoder_attention=[rows(2, 2, 2, 1, True)[None]],
        cross_attention=[rows(2, 2, 3, 2)[None]], encoder_tokens=source, decoder_tokens=target,
    )  # fmt: skip
    assert [tower.name for tower in atlas.towers] == ["encoder", "decoder", "cross"]
    assert (atlas.weights(0, "cross.L0H1") == rows(2, 2, 3, 2)[1]).all()
    assert atlas.tokens(0, "decoder")["text"].tolist() == target


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (([rows(2, 4, 4)[None]], TOKENS), "there are 6"),
        (([rows(2, N, N)[None] * np.nan], TOKENS), "NaN"),
        (([rows(2, N, N)[None] * 5], TOKENS), "after the softmax"),
        (([], TOKENS), "empty"),
        ((None, None), "nothing to show"),
        ((["no", "numbers"], TOKENS), "cannot be read"),
        (([rows(2, N, N)[None]], ["\ud800", *TOKENS[1:]]), "no whole text"),
    ],
)
def test_what_is_no_attention_is_refused(given: tuple[Any, Any], says: str) -> None:
    with pytest.raises(aa.InputError, match=says):
        aa.from_bertviz(*given)


# TransformerLens ---------------------------------------------------------------------------------


class Cache(dict[str, Any]):
    """A mapping with the names of an ActivationCache."""


def softmax(logits: Floats) -> Floats:
    grown = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(grown / grown.sum(-1, keepdims=True), np.float32)


def cache_of(
    batch: int = 1, heads: int = 4, groups: int = 2, width: int = 8, cap: float | None = None,
    hidden: int | None = None,
) -> Cache:  # fmt: skip
    """Two causal layers as TransformerLens caches them, worked out here with NumPy."""
    luck, made = np.random.default_rng(0), Cache()
    for layer in range(2):
        q = luck.standard_normal((batch, N, heads, width)).astype(np.float32)
        k, v = luck.standard_normal((2, batch, N, groups, width)).astype(np.float32)
        shared = np.repeat(k, heads // groups, axis=2)
        scores = np.einsum("bqhd,bkhd->bhqk", q, shared) / np.sqrt(width)
        if cap is not None:
            scores = cap * np.tanh(scores / cap)
        scores = np.where(np.tri(N, dtype=bool), scores, -np.inf).astype(np.float32)
        if hidden is not None:
            scores[..., hidden + 1 :, hidden] = -np.inf
        stem = f"blocks.{layer}.attn."
        tensors = {"hook_q": q, "hook_k": k, "hook_v": v, "hook_attn_scores": scores,
                   "hook_pattern": softmax(scores), "hook_z": q}  # fmt: skip
        made |= {stem + name: torch.tensor(array) for name, array in tensors.items()}
    made["hook_embed"] = torch.zeros(1, N, 4)
    return made


def test_a_cache_becomes_an_atlas_with_vectors_and_a_receipt(tmp_path: Path) -> None:
    cache = cache_of(batch=2)
    atlas = aa.from_transformer_lens(cache, [TOKENS, TOKENS[::-1]], path=tmp_path / "x.atlas")
    assert len(atlas) == 2 and atlas.towers[0].layers[0].groups == 2
    for number in range(2):
        for head in range(4):
            pattern = cache["blocks.1.attn.hook_pattern"][number, head].numpy()
            assert np.abs(atlas.weights(number, f"L1H{head}") - pattern).max() < 1e-6
    values = cache["blocks.1.attn.hook_v"][1, :, 1].numpy()
    assert (atlas.values(head="L1H3", input=1) == values).all()
    assert atlas.receipt.exact and atlas.receipt.worst_error < 1e-6
    assert atlas.receipt.line.startswith("compared with the cache's own pattern (")
    atlas.layout("pca", progress=False)


def test_a_cache_without_a_batch_axis_or_vectors_is_read_too() -> None:
    whole = cache_of()
    single = {name: tensor[0] for name, tensor in whole.items()}
    assert aa.from_transformer_lens(single, TOKENS).receipt.exact
    patterns = {name: tensor for name, tensor in whole.items() if name.endswith("pattern")}
    atlas = aa.from_transformer_lens(patterns, TOKENS)
    assert atlas.manifest.keep == ("weights",) and "no receipt" in atlas.receipt.line
    assert (atlas.weights(0, "L0H1") == whole["blocks.0.attn.hook_pattern"][0, 1].numpy()).all()


def test_hidden_keys_and_soft_caps_are_found_or_asked_for() -> None:
    hidden = aa.from_transformer_lens(cache_of(hidden=2), TOKENS)
    assert (hidden.weights(0, "L0H0")[3:, 2] == 0).all() and hidden.receipt.exact
    capped = cache_of(cap=0.5)
    with pytest.raises(aa.InputError, match="differ from the pattern"):
        aa.from_transformer_lens(capped, TOKENS)
    assert aa.from_transformer_lens(capped, TOKENS, softcap=0.5).receipt.exact
    assert not aa.from_transformer_lens(capped, TOKENS, vectors=False).receipt.exact


def test_queries_before_rotary_positions_are_refused_and_those_after_them_taken() -> None:
    cache = cache_of()
    turned = {}
    for layer in range(2):
        for what in "qk":
            name = f"blocks.{layer}.attn.hook_{what}"
            turned[name.replace("hook_", "hook_rot_")] = cache[name]
            turned[name] = cache[name].flip(-1) + 1
    plain: Mapping[str, Any] = cache | {n: t for n, t in turned.items() if "rot" not in n}
    with pytest.raises(aa.InputError, match="hook_rot_q"):
        aa.from_transformer_lens(plain, TOKENS)
    assert aa.from_transformer_lens(cache | turned, TOKENS).receipt.exact


def _wrong(name: str, value: Any) -> Any:
    return cache_of() | {f"blocks.0.attn.{name}": value}


@pytest.mark.parametrize(
    ("cache", "tokens", "says"),
    [
        ([1, 2], TOKENS, "run_with_cache"),
        ({}, TOKENS, "names_filter"),
        (cache_of(), TOKENS[:3], "3 tokens"),
        (cache_of(), [], "empty"),
        (cache_of(), [1, 2], "tokens is 1"),
        (cache_of(batch=2), TOKENS, "batch of 2"),
        (_wrong("hook_pattern", torch.zeros(1, 4, N, N)), TOKENS, "sum to one"),
        (_wrong("hook_pattern", torch.full((1, 4, N, N), torch.nan)), TOKENS, "sum to one"),
        (_wrong("hook_pattern", torch.zeros(3)), TOKENS, "shape"),
        (_wrong("hook_k", torch.zeros(1, N, 3, 8)), TOKENS, "key tensor of layer 0"),
        (_wrong("hook_q", torch.zeros(1, N, 4, 5)), TOKENS, "do not fit"),
        (_wrong("hook_v", torch.full((1, N, 2, 8), torch.inf)), TOKENS, "value tensor"),
    ],
)  # fmt: skip
def test_what_is_no_cache_is_refused(cache: Any, tokens: Any, says: str) -> None:
    with pytest.raises(aa.InputError, match=says):
        aa.from_transformer_lens(cache, tokens)


# Plain arrays ------------------------------------------------------------------------------------


def test_weights_are_written_as_arrays_that_any_program_reads(tmp_path: Path) -> None:
    weights = rows(2, N, N)
    atlas = aa.from_bertviz([weights[None]], TOKENS)
    path = aa.to_arrays(atlas, tmp_path / "w.npz")
    with np.load(path) as held:
        assert list(held) == ["input0.self.L0"] and (held["input0.self.L0"] == weights).all()
    other = load_file(aa.to_arrays(atlas, tmp_path / "w.safetensors", inputs=[0]))
    assert (other["input0.self.L0"] == weights).all()
    with pytest.raises(aa.InputError, match=r"npz or \.safetensors"):
        aa.to_arrays(atlas, tmp_path / "w.pkl")
    with pytest.raises(aa.PickError, match="inputs go from 0 to 0"):
        aa.to_arrays(atlas, tmp_path / "w.npz", inputs=[1])
