"""Log-sum-exp comes for nothing: torch's own kernel runs, to the bit, and tells it too."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from transformers import Gemma2Config, Gemma2Model, LlamaConfig, LlamaModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

import attention_atlas as aa
from attention_atlas.record.watch import registry
from attention_atlas.record.watch.log_sum_exp import WatchedKernel, from_weights, with_unseen_rows
from attention_atlas.store.files import write_tensors
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import StoredLayer
from attention_atlas.store.shard import ShardFile
from tests.record.test_spot import KINDS, made
from tests.store.test_format import MODELS, SMALL, read_safetensors
from tests.tolerance import unit

Floats = np.ndarray[Any, np.dtype[np.float64]]
HALVES = [torch.float32, torch.bfloat16, torch.float16]


@dataclass
class Case:
    """One attention call as transformers makes it."""

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None

    @property
    def given(self) -> tuple[Any, ...]:
        return self.module, self.query, self.key, self.value, self.mask


@st.composite
def cases(draw: st.DrawFn) -> Case:
    groups, share = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 4]))
    batch, n, width = draw(st.integers(1, 3)), draw(st.integers(1, 40)), draw(st.integers(1, 20))
    m = n + draw(st.sampled_from([0, 0, 3]))
    value_width = draw(st.sampled_from([width, width, width + 3]))
    dtype = draw(st.sampled_from(HALVES))
    dice = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    query = torch.randn(batch, groups * share, n, width, generator=dice).to(dtype)
    key = torch.randn(batch, groups, m, width, generator=dice).to(dtype) * 2
    value = torch.randn(batch, groups, m, value_width, generator=dice).to(dtype)
    module = nn.Module()
    module.num_key_value_groups = share  # type: ignore[assignment]
    module.is_causal = draw(st.booleans())  # type: ignore[assignment]
    seen = torch.rand(batch, 1, n, m, generator=dice) < 0.7
    seen[..., 0] = True
    mask = {
        "none": None,
        "seen": seen,
        "added": torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min),
    }[draw(st.sampled_from(["none", "seen", "added"]))]
    return Case(module, query, key, value, mask)


def logits_of(case: Case) -> Floats:
    """The logits in double precision, by plain NumPy; −inf where a row may not look."""
    query, key = (x.double().numpy() for x in (case.query, case.key))
    key = key.repeat(query.shape[1] // key.shape[1], axis=1)
    logits = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    n, m = logits.shape[-2:]
    if case.mask is not None:
        seen = case.mask if case.mask.dtype == torch.bool else case.mask == 0
        hidden = ~seen.numpy()
        return np.asarray(np.where(hidden, -np.inf, logits))
    if case.module.is_causal and n > 1:
        logits = np.where(np.triu(np.ones((n, m), bool), 1), -np.inf, logits)
    return np.asarray(logits)


def log_sum_exp(logits: Floats) -> Floats:
    top = logits.max(-1, keepdims=True)
    return np.asarray(np.log(np.exp(logits - top).sum(-1)) + top[..., 0])


def largest_sum(case: Case) -> float:
    """The largest Σ|q k| of a logit."""
    query, key = (x.double().abs().numpy() for x in (case.query, case.key))
    key = key.repeat(query.shape[1] // key.shape[1], axis=1)
    return float((query @ key.swapaxes(-1, -2)).max() / np.sqrt(query.shape[-1]))


@settings(max_examples=150)
@given(cases())
def test_the_watched_kernel_gives_the_bits_of_a_plain_run_and_the_log_sum_exp(case: Case) -> None:
    plain, _ = sdpa_attention_forward(*case.given)
    with WatchedKernel() as kernel:
        watched, _ = registry.fused(*case.given)
    assert torch.equal(watched, plain)
    lse = kernel.rows(case.query)
    assert lse is not None and lse.dtype == torch.float32
    # A kernel multiplies and adds in float32, and takes exp no finer than the type of the model, to
    # which it rounds the weights; single steps, for other widths of values, round to that type.
    width, keys, own = *case.key.shape[:1:-1], torch.finfo(case.query.dtype).eps / 2
    u = own if case.value.shape[-1] != width else unit()
    bound = (width + 6) * u * largest_sum(case) + (keys + 8) * u + own
    np.testing.assert_allclose(lse.numpy(), log_sum_exp(logits_of(case)), atol=bound, rtol=0)


@settings(max_examples=10)
@given(cases())
def test_inference_mode_changes_nothing(case: Case) -> None:
    with torch.inference_mode():
        plain, _ = sdpa_attention_forward(*case.given)
        with WatchedKernel() as kernel:
            watched, _ = registry.fused(*case.given)
    assert torch.equal(watched, plain)
    assert kernel.rows(case.query) is not None


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if "causal" not in kind], ids=lambda kind: "+".join(kind)
)
def test_weights_tell_the_log_sum_exp_of_their_row(kind: dict[str, Any]) -> None:
    call = made(3, **kind)
    weights = call.softmax(call.logits())
    logits = call.logits().double().numpy()
    if call.sink is not None:
        wide = np.broadcast_to(call.sink.numpy()[:, None, None], (*logits.shape[:-1], 1))
        logits = np.concatenate([logits, wide], -1)
    largest = np.abs(call.query.numpy()).max() * np.abs(call.key.numpy()).max()
    width, keys = call.query.shape[-1], call.key.shape[2]
    bound = 2 * (width + 6) * unit() * width * largest * call.scale + 2 * (keys + 8) * unit()
    found = from_weights(call, weights).numpy()
    np.testing.assert_allclose(found, log_sum_exp(logits), atol=bound, rtol=0)


def test_a_row_that_sees_nothing_counts_as_even() -> None:
    given = torch.tensor([[1.5, -65504.0, -torch.inf, torch.nan, torch.finfo(torch.float32).min]])
    found = with_unseen_rows(given, keys=7)
    np.testing.assert_allclose(found[0].numpy(), [1.5, *[np.log(7)] * 4], rtol=unit() * 2)


STORED_MODELS: dict[str, Any] = {
    **MODELS,
    "groups": lambda: LlamaModel(LlamaConfig(**SMALL)),
    "soft cap": lambda: Gemma2Model(
        Gemma2Config(**SMALL, head_dim=8, attn_logit_softcapping=2.0, sliding_window=4)
    ),
}


@pytest.mark.parametrize("name", STORED_MODELS)
def test_the_stored_log_sum_exp_is_that_of_the_stored_vectors(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = STORED_MODELS[name]().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2 if weight.dim() > 1 else 0.5)
    inputs: list[Any] = [{"input_ids": torch.randint(5, 99, (1, n))} for n in (9, 6, 14)]
    atlas = aa.capture(model, inputs, path=tmp_path / "x.atlas", progress=False)
    for head in atlas.heads()["head"]:
        for number in range(3):
            _close_to_its_vectors(atlas, head, number)


def _close_to_its_vectors(atlas: Any, head: str, number: int) -> None:
    """Vectors are rounded to float16: each product of a logit is off by 2 u, relatively."""
    query, key = (x.astype(float) for x in (atlas.queries(head, number), atlas.keys(head, number)))
    terms, layer = atlas.terms(head, number), atlas.layer_of(head)
    logits = terms.scale * query @ key.T
    if terms.softcap is not None:
        logits = terms.softcap * np.tanh(logits / terms.softcap)
    if terms.added is not None:
        logits = logits + terms.added
    logits = np.where(terms.seen, logits, -np.inf)
    if terms.sink is not None:
        logits = np.column_stack([logits, np.full(len(logits), terms.sink)])
    tower = next(tower for tower in atlas.towers if layer in tower.layers)
    place = np.array([int(head.rpartition("H")[2])])
    lse = atlas.held_layer(0, tower, layer).lse(number, place)
    assert lse is not None and lse.dtype == np.float32
    products = (np.abs(query) @ np.abs(key).T).max() * terms.scale
    bound = 4 * unit(np.float16) * products + 2 * (len(key) + layer.width + 14) * unit()
    np.testing.assert_allclose(lse[0], log_sum_exp(logits), atol=bound, rtol=0)


def test_some_rows_of_the_log_sum_exp_are_those_rows(tmp_path: Path) -> None:
    atlas = aa.capture("builtin:gpt", ["One two.", "A cat sat."], path=tmp_path / "x.atlas",
                       progress=False)  # fmt: skip
    stored = layer_of(atlas)
    whole = stored.lse(1, np.array([0, 1, 2]))
    some = stored.lse(1, np.array([2, 0]), np.array([3, 1]))
    assert whole is not None and some is not None
    np.testing.assert_array_equal(some, whole[np.ix_([2, 0], [3, 1])])


def test_an_older_atlas_opens_without_it(tmp_path: Path) -> None:
    atlas = aa.capture("builtin:gpt", ["A cat sat."], path=tmp_path / "x.atlas", progress=False)
    shard = tmp_path / "old.safetensors"
    tensors = read_safetensors(tmp_path / "x.atlas" / "vectors" / "00000.safetensors")
    assert any(name.endswith(".lse") for name in tensors)
    write_tensors(shard, {k: v for k, v in tensors.items() if not k.endswith(".lse")})
    tower = atlas.towers[0]
    old = StoredLayer(ShardFile(shard, shard.stat().st_size, None), tower.name, tower.layers[0])
    assert old.lse(0, np.array([0])) is None
    heads = np.arange(tower.layers[0].heads)
    np.testing.assert_array_equal(old.weights(0, heads), atlas.layer_weights(0, 0))


def layer_of(atlas: StoredAtlas) -> StoredLayer:
    return atlas.held_layer(0, atlas.towers[0], atlas.towers[0].layers[0])
