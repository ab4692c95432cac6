"""What heads write and read: against plain loops with the model's own matrices, found by name."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_atlas as aa
from attention_atlas.measure.scores import composition, output_alike, output_rank, ov_copying
from attention_atlas.measure.scores.retrieval import by_chance, retrieved
from attention_atlas.models.encode import encode
from attention_atlas.models.inputs import Input
from attention_atlas.models.load import load
from attention_atlas.record.prove.receipt import try_ways
from attention_atlas.record.write.head_matrices import head_matrices
from attention_atlas.studies.circuits import output_scores, retrieval_score, weight_scores
from tests.atlases import OTHER, SENTENCE
from tests.record.test_output import ALL, captured

# Where each shape has query, key, value and output, layer by layer: modules by name, by hand.
NAMED: dict[str, Any] = {
    "GPT-2": ("transformer.h.{}.attn.c_attn", None, None, "transformer.h.{}.attn.c_proj"),
    "BERT": tuple(f"bert.encoder.layer.{{}}.attention.{part}" for part in
                  ("self.query", "self.key", "self.value", "output.dense")),
    "Llama": tuple(f"model.layers.{{}}.self_attn.{part}_proj" for part in "qkvo"),
    "Gemma": tuple(f"model.layers.{{}}.self_attn.{part}_proj" for part in "qkvo"),
    "ViT": tuple(f"vit.layers.{{}}.attention.{part}_proj" for part in "qkvo"),
    "T5": tuple(f"encoder.block.{{}}.layer.0.SelfAttention.{part}" for part in "qkvo"),
}  # fmt: skip


def _named(model: Any, name: str, layer: int, heads: int, groups: int) -> list[Any]:
    """Query, key, value (each (H, D, width)) and output (H, D, width) of a layer, by hand."""
    query, key, value, output = NAMED[name]

    def weight(place: str) -> Any:
        module = model.get_submodule(place.format(layer))
        found = module.weight.detach().double().numpy()
        return found.T if type(module).__name__ == "Conv1D" else found  # (out, in)

    if key is None:
        sides = np.split(weight(query), 3)
    else:
        sides = [weight(query), weight(key), weight(str(value))]
    cut = [side.reshape(count, -1, side.shape[1]) for side, count in
           zip(sides, (heads, groups, groups), strict=True)]  # fmt: skip
    each = [np.repeat(side, heads // len(side), 0) for side in cut]
    return [*each, weight(str(output)).T.reshape(heads, -1, weight(str(output)).shape[0])]


def _plain_copying(value: Any, output: Any) -> float:
    """The eigenvalues of the whole width × width matrix."""
    found = np.linalg.eigvals(value.T @ output)
    return float(found.sum().real / np.abs(found).sum())


def _plain_composition(writer: Any, reader: Any, side: str) -> float:
    query, key, value, output = reader
    circuit = {"q": query.T @ key, "k": key.T @ query, "v": value.T @ output}[side]
    writes = writer[2].T @ writer[3]
    norm = np.linalg.norm
    return float(norm(writes @ circuit) / (norm(writes) * norm(circuit)))


@pytest.mark.parametrize("name", NAMED)
def test_copying_and_composition_are_those_of_the_whole_matrices(name: str) -> None:
    shape = ALL[name]
    atlas, model, inputs = captured(shape)
    items = [encode(load(model), Input("tensors", tensors=inputs[0]))]
    ready = {
        one.name: one for one in weight_scores(atlas, head_matrices(try_ways(load(model), items)))
    }
    tower = atlas.towers[0]
    layers = [_named(model, name, layer.layer, layer.heads, layer.groups) for layer in tower.layers]
    heads = [[side[head] for side in layer] for layer in layers for head in range(len(layer[0]))]
    count, first = len(heads), len(layers[0][0])
    expected = [_plain_copying(head[2], head[3]) for head in heads]
    np.testing.assert_allclose(ready["ov-copying"].columns[:count, 0], expected, atol=1e-5)
    for side in "qkv":
        largest = [
            max(_plain_composition(writer, head, side) for writer in heads[:first])
            for head in heads[first:]
        ]
        found = ready[f"{side}-composition"].columns[:count, 0]
        assert np.isnan(found[:first]).all()
        np.testing.assert_allclose(found[first:], largest, atol=1e-5)


@pytest.mark.parametrize("name", NAMED)
def test_rank_and_likeness_of_outputs_are_those_of_plain_loops(name: str) -> None:
    atlas, _, _ = captured(ALL[name])
    rank, alike = output_scores(atlas)
    tower = atlas.towers[0]
    prefix = f"{tower.name}." if len(atlas.towers) > 1 else ""
    for place, number in enumerate(range(len(atlas))):
        outputs = []
        for layer in tower.layers:
            matrix = atlas.output.projection(tower.name, layer.layer).matrix.astype(float)
            for head in range(layer.heads):
                named = f"{prefix}L{layer.layer}H{head}"
                moved = atlas.weights(number, named).astype(float) @ atlas.values(named, number)
                outputs.append(moved @ matrix[head])
        for head, output in enumerate(outputs):
            sizes = np.linalg.svd(output, compute_uv=False)
            p = sizes[sizes > 0] / sizes.sum()
            assert rank.values[place, head] == pytest.approx(
                np.exp(-(p * np.log(p)).sum()), rel=1e-5
            )
            cosines = [
                abs((output * other).sum()) / np.linalg.norm(output) / np.linalg.norm(other)
                for at, other in enumerate(outputs) if at != head
            ]  # fmt: skip
            assert alike.values[place, head] == pytest.approx(max(cosines), rel=1e-5)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), width=st.integers(4, 12), groups=st.sampled_from([1, 2, 4]))
def test_small_products_have_the_eigenvalues_and_norms_of_large_ones(
    seed: int, width: int, groups: int
) -> None:
    luck = np.random.default_rng(seed)
    value, output = luck.standard_normal((groups, 3, width)), luck.standard_normal((4, 3, width))
    each = np.repeat(value, 4 // groups, 0)
    expected = [_plain_copying(v, o) for v, o in zip(each, output, strict=True)]
    np.testing.assert_allclose(ov_copying.copying(value, output), expected, atol=1e-6)
    layers = [composition.CircuitLayer(*luck.standard_normal((4, 2, 3, width))) for _ in range(3)]
    found = composition.composition(layers)
    heads = [[side[h] for side in (one.query, one.key, one.value, one.output)]
             for one in layers for h in range(2)]  # fmt: skip
    for late in range(2, 6):
        for early in range(late // 2 * 2):
            for side in "qkv":
                plain = _plain_composition(heads[early], heads[late], side)
                assert found[side][late, early] == pytest.approx(plain, rel=1e-9)
    turned = output_rank.root(output)
    sizes = np.linalg.svd(output[0], compute_uv=False)
    np.testing.assert_allclose(np.linalg.svd(turned[0], compute_uv=False), sizes, atol=1e-6)


def test_a_planted_copying_head_has_positive_eigenvalues_and_a_removing_one_negative() -> None:
    torch.manual_seed(0)
    config = hf.GPT2Config(vocab_size=99, n_embd=32, n_layer=1, n_head=4, n_positions=64)
    model = hf.GPT2LMHeadModel(config).eval()
    attention = model.transformer.h[0].attn
    with torch.no_grad():
        read = torch.linalg.qr(torch.randn(32, 8)).Q  # (width, E)
        attention.c_attn.weight[:, 64:72] = read
        attention.c_proj.weight[0:8] = read.T
        attention.c_attn.weight[:, 72:80] = read
        attention.c_proj.weight[8:16] = -read.T
    inputs: Any = [{"input_ids": torch.arange(5, 25)[None]}]
    atlas = aa.capture(model, inputs, progress=False)
    items = [encode(load(model), Input("tensors", tensors=inputs[0]))]
    scores = weight_scores(atlas, head_matrices(try_ways(load(model), items)))[0].columns[:, 0]
    assert scores[0] == pytest.approx(1, abs=1e-4)
    assert scores[1] == pytest.approx(-1, abs=1e-4)
    assert np.abs(scores[2:]).max() < 0.9


def test_heads_of_one_output_are_alike_and_a_constant_head_has_rank_one() -> None:
    luck = np.random.default_rng(0)
    output = luck.standard_normal((3, 6, 8))
    output[1] = -2 * output[0]
    cosine = output_alike.cosines(output)
    assert cosine[0, 1] == pytest.approx(-1)
    near = output_alike.nearest(cosine)
    assert near[:2] == pytest.approx([1, 1]) and near[2] < 0.9
    output[2] = np.outer(luck.standard_normal(6), luck.standard_normal(8))
    assert output_rank.effective_rank(output)[2] == pytest.approx(1)
    assert output_rank.effective_rank(np.eye(5)[None])[0] == pytest.approx(5)


def test_a_planted_needle_head_retrieves_all_and_chance_is_worked_out_by_hand() -> None:
    wanted, weights = np.array([3, 1]), np.full((2, 2, 5), 0.1)
    weights[0, [0, 1], wanted] = 0.9
    weights[1, :, 0] = 0.5
    assert retrieved(weights, wanted).tolist() == [1.0, 0.0]
    assert by_chance(np.array([3, 4])) == pytest.approx((1 / 4 + 1 / 5) / 2)


def test_the_needle_heads_of_a_trained_model_are_found_and_its_induction_head_is_one() -> None:
    atlas = aa.capture("builtin:gpt", [SENTENCE, OTHER], progress=False)
    extra = retrieval_score(atlas, load("builtin:gpt"))
    assert extra is not None
    names = atlas.heads()["head"].tolist()
    value, low, _, n, chance = (column for column in extra.figures(0))
    induction = names.index("L4H5")  # as the model's card names it
    assert n[induction] == 12 and low[induction] > 10 * chance[induction]
    assert value[names.index("L3H2")] < 0.1  # the previous-token head fetches nothing
    assert value.max() > 0.8


def test_models_that_write_no_text_have_no_retrieval_score() -> None:
    atlas = aa.capture("builtin:bert", SENTENCE, progress=False)
    assert retrieval_score(atlas, load("builtin:bert")) is None
