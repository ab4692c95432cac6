"""Does what heads add to a logit add up, whatever the shapes and numbers? Drawn by hypothesis.

Expected are plain loops in float64 over drawn arrays, and hooks on modules, named by hand, of
models whose shapes are drawn. The tolerance is that of a chain of dot products: as many roundings
as the longest chain has terms, each of a unit of the sum of all absolute terms (`tolerance.py`).
"""

import itertools
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import torch
import transformers as hf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attention_atlas as aa
from attention_atlas.store.attribution import direction, layer_adds
from attention_atlas.store.output import LayerProjection, Readout
from tests.store.test_contributions import EXACT
from tests.tolerance import unit

WIDTH, WORDS = 3, 4
numbers = st.floats(-2, 2, width=32)
gains = st.floats(0.5, 2, width=32)


def drawn(data: st.DataObject, shape: tuple[int, ...], elements: Any = numbers) -> Any:
    return data.draw(arrays.arrays(np.float32, shape, elements=elements))


def drawn_readout(data: st.DataObject) -> Readout:
    norm = data.draw(st.sampled_from(["rms", "layer"]))
    return Readout(
        "decoder", norm, drawn(data, (WIDTH,)), drawn(data, (WIDTH,)), data.draw(gains), "each",
        np.arange(10, 10 + WORDS), drawn(data, (WORDS, WIDTH)), None, {},
    )  # fmt: skip


def held(x: Any, scale: float, readout: Readout) -> Any:
    """The final norm of a stream without its shift, its scale held, written out."""
    centred = x - x.mean() if readout.norm == "layer" else x
    return centred * scale * readout.gain.astype(float)


def after(given_sum: Any, part: Any, projection: LayerProjection) -> Any:
    """What one part of a sum becomes behind the projection, the norm there held as it was."""
    if not projection.after:
        return part
    assert projection.gain is not None
    gain = projection.gain.astype(float)
    if projection.after == "scale":
        return part * gain
    if projection.after == "layer":
        given_sum, part = given_sum - given_sum.mean(), part - part.mean()
    return part / np.sqrt((given_sum**2).mean()) * gain


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(1, 2), st.integers(1, 5), st.integers(1, 4))
def test_what_heads_add_is_what_the_logit_gets_from_them(
    data: st.DataObject, groups: int, group: int, m: int, width: int
) -> None:
    heads, readout = groups * group, drawn_readout(data)
    weights = np.exp(drawn(data, (heads, 1, m)))
    weights /= weights.sum(-1, keepdims=True)
    values = drawn(data, (groups, m, width))
    kind = data.draw(st.sampled_from(["", "scale", "rms", "layer"]))
    projection = LayerProjection(
        drawn(data, (heads, width, WIDTH)), drawn(data, (WIDTH,)) if data.draw(st.booleans()) else
        None, drawn(data, (WIDTH,), gains) if kind else None, kind,
    )  # fmt: skip
    scale, words = data.draw(gains), data.draw(st.permutations(range(10, 10 + WORDS)))[:2]
    matrix, bias = projection.matrix.astype(float), projection.bias
    moved = np.zeros((heads, m, WIDTH))
    for head, key in itertools.product(range(heads), range(m)):
        value = values[head // group, key].astype(float)
        moved[head, key] = float(weights[head, 0, key]) * (value @ matrix[head])
    output = moved.sum((0, 1)) + (0 if bias is None else bias.astype(float))
    spread = output - output.mean() if kind == "layer" else output
    if kind in ("rms", "layer") and np.sqrt((spread**2).mean()) < 0.1:
        return  # a norm of nearly nothing says nothing
    first, second = (readout.rows[word - 10].astype(float) for word in words)

    g = direction(readout, scale, words[0], words[1])
    found = layer_adds(weights, values, projection, g)

    # The terms of the longest chain: keys, head widths, the width twice, the norms.
    chain = m + heads * width + 2 * WIDTH + 16
    sizes = np.abs(weights[:, 0, :, None] * values.repeat(group, 0)).astype(float)
    reach = np.einsum("hme,hed->d", sizes, np.abs(matrix))
    amplified = 2 / 0.1 if kind in ("rms", "layer") else 4.0  # the largest gain, the least norm
    bias_size = 0 if bias is None else float(np.abs(bias).sum())
    most = (reach.sum() + bias_size + 1) ** 2 * 4 * readout.factor * scale * amplified
    slack = chain * unit() * most * float(np.abs(first).sum() + np.abs(second).sum() + 1)
    for head, key in itertools.product(range(heads), range(m)):
        part = after(output, moved[head, key], projection)
        expected = readout.factor * held(part, scale, readout) @ (first - second)
        assert found[head, key] == pytest.approx(expected, abs=slack)
    rest = after(output, output - moved.sum((0, 1)), projection)  # what the bias adds
    whole = readout.factor * held(after(output, output, projection), scale, readout)
    bias_adds = readout.factor * held(rest, scale, readout) @ (first - second)
    assert found.sum(dtype=float) + bias_adds == pytest.approx(
        whole @ (first - second), abs=(heads * m + 1) * slack
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_difference_is_that_of_two_tokens(data: st.DataObject) -> None:
    readout, scale = drawn_readout(data), data.draw(gains)
    one, two = data.draw(st.permutations(range(10, 10 + WORDS)))[:2]
    both = direction(readout, scale, one, two).astype(float)
    apart = direction(readout, scale, one, None).astype(float) - direction(
        readout, scale, two, None
    )
    # Computed in float64 and rounded once, so each of the three is off by a unit of its size.
    sizes = np.abs(readout.rows).max() * np.abs(readout.gain).max() * readout.factor * scale
    np.testing.assert_allclose(both, apart, atol=8 * unit() * float(sizes))
    if readout.norm == "layer":  # a constant added to the stream changes no logit
        assert both.sum() == pytest.approx(0, abs=8 * WIDTH * unit() * float(sizes))


def _model(kind: str, layers: int, heads: int, groups: int, width: int) -> tuple[Any, list[Any]]:
    """A random model of a drawn shape, and the modules that project what its heads move."""
    torch.manual_seed(layers + 10 * heads + 100 * groups + 1000 * width)
    common: dict[str, Any] = {"vocab_size": 20, "bos_token_id": 0, "eos_token_id": 0}
    if kind == "GPT-2":
        gpt = hf.GPT2LMHeadModel(hf.GPT2Config(
            n_layer=layers, n_head=heads, n_embd=heads * width, n_positions=16,
            initializer_range=0.3, **common,
        )).eval()  # fmt: skip
        return gpt, [block.attn.c_proj for block in gpt.transformer.h]
    llama = hf.LlamaForCausalLM(hf.LlamaConfig(
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=groups,
        hidden_size=heads * width, head_dim=width, intermediate_size=12,
        max_position_embeddings=16, initializer_range=0.3, pad_token_id=0, **common,
    )).eval()  # fmt: skip
    return llama, [block.self_attn.o_proj for block in llama.model.layers]


@pytest.mark.parametrize("kind", ["GPT-2", "Llama"])
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.sampled_from([4, 8]),
    st.integers(2, 6), st.data(),
)  # fmt: skip
def test_all_heads_add_what_hooks_see_leave_attention(
    kind: str, layers: int, groups: int, group: int, width: int, n: int, data: st.DataObject
) -> None:
    heads = groups * group
    model, projections = _model(kind, layers, heads, groups if kind == "Llama" else heads, width)
    ids = torch.arange(n)[None] + 1
    position, token, other = data.draw(st.integers(0, n - 1)), 1, n
    atlas = aa.capture(model, [{"input_ids": ids}], keep=EXACT, progress=False)
    model.set_attn_implementation("eager")
    left: list[Any] = []
    norm = model.transformer.ln_f if kind == "GPT-2" else model.model.norm
    hooks = [
        module.register_forward_hook(lambda _m, _i, out: left.append(out.detach().double()))
        for module in projections
    ]
    stream: list[Any] = []
    hooks.append(norm.register_forward_pre_hook(lambda _m, i: stream.append(i[0].double())))
    with torch.no_grad():
        model(input_ids=ids)
    for hook in hooks:
        hook.remove()
    bias = [getattr(module, "bias", None) for module in projections]
    given_up: Any = sum(
        out[0, position] - (0 if own is None else own.detach().double())
        for out, own in zip(left, bias, strict=True)
    )
    x = stream[0][0, position]
    eps = norm.eps if kind == "GPT-2" else norm.variance_epsilon
    if kind == "GPT-2":  # a layer norm takes the mean away
        x, given_up = x - x.mean(), given_up - given_up.mean()
    scale = (x.square().mean() + eps).rsqrt() * norm.weight.detach().double()
    difference = (model.lm_head.weight[token] - model.lm_head.weight[other]).detach().double()
    expected = float((given_up * scale) @ difference)

    found = atlas.attribution(0, token, other, position)

    g = np.abs((scale * difference).numpy())
    reach = 0.0  # what the heads could add at the most, all terms positive
    for layer in range(layers):
        values = np.abs(atlas.layer_values(0, layer)).astype(float)  # (G, M, E)
        matrix = np.abs(atlas.output.projection(atlas.towers[0].name, layer).matrix) @ g  # (H, E)
        most = values.max(1).repeat(len(matrix) // len(values), 0)  # weights sum to one
        reach += float((most * matrix).sum())
    # Two runs of the model, whose weights differ by the roundings of their logits (at most 10).
    chain = n + heads * width + 2 * heads * width + 16 + 10 * width
    slack = 2 * layers * chain * unit() * reach
    assert found.total == pytest.approx(expected, abs=slack)
    assert found.tokens().sum() == pytest.approx(found.total, abs=slack)
    assert found.heads()["adds"].sum() == pytest.approx(found.total, abs=slack)
    assert slack < 1e-2 * max(1.0, reach)
