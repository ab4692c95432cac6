"""Is what an atlas keeps of its model's outputs what the model has?

Which module is the projection, and what its matrix is, is known here by name, by hand; the code
that is tested never asks for a name.
"""

from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from torch import nn

import attention_atlas as aa
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.record.prove.linear_map import linear_map, norm_map
from tests.edits.shapes import BASE, HEADS, SHAPES, Shape, text

GROUPED: dict[str, Any] = {
    **BASE, "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
GEMMAS = {
    name: Shape(
        make, text, "L1", "attentions", "model.layers.1.self_attn.o_proj",
        "model.layers.1.self_attn.v_proj", groups=2)
    for name, make in {
        "Gemma": lambda: hf.GemmaForCausalLM(hf.GemmaConfig(**GROUPED)),
        "Gemma 2": lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**GROUPED)),
    }.items()
}  # fmt: skip
ALL = {**SHAPES, **GEMMAS}


def captured(shape: Shape, **options: Any) -> tuple[Any, Any, list[dict[str, torch.Tensor]]]:
    model = shape.build().float()
    tensors = {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in shape.tensors().items()
    }
    inputs = [{name: tensor[row : row + 1] for name, tensor in tensors.items()} for row in range(2)]
    return aa.capture(model, inputs, progress=False, **options), model, inputs


@pytest.mark.parametrize("name", ALL)
def test_the_projection_found_is_the_one_that_we_know_by_name(name: str) -> None:
    shape = ALL[name]
    atlas, model, _ = captured(shape)
    tower, _, layer = shape.layer.rpartition(".L") if "." in shape.layer else ("", "", "1")
    found = atlas.output.projection(tower or atlas.towers[0].name, int(layer))
    module = model.get_submodule(shape.projection)
    matrix = module.weight.detach().numpy()
    matrix = matrix if type(module).__name__ == "Conv1D" else matrix.T
    assert found.matrix.shape[0] == HEADS
    np.testing.assert_array_equal(found.matrix.reshape(matrix.shape), matrix)
    bias = getattr(module, "bias", None)
    if bias is not None and bool(bias.any()):
        np.testing.assert_array_equal(found.bias, bias.detach().numpy())
    assert set(atlas.output.layers) == {
        f"{each.name}.L{layer.layer}" for each in atlas.towers for layer in each.layers
    }
    assert atlas.output.worst_error < 1e-5


def test_what_the_logits_are_read_from_is_found_in_each_shape() -> None:
    read = {}
    for name in ("GPT-2", "Llama", "ViT", "T5", "Gemma", "Gemma 2"):
        atlas, model, _ = captured(ALL[name])
        readout = atlas.output.readout
        read[name] = (readout.norm, readout.place, len(readout.layers))
        head = model.get_output_embeddings() or model.classifier
        np.testing.assert_array_equal(readout.rows, head.weight.detach().numpy())
    assert read == {
        "GPT-2": ("layer", "each", 2), "Llama": ("rms", "each", 2), "ViT": ("layer", "first", 2),
        "T5": ("rms", "each", 4), "Gemma": ("rms", "each", 2), "Gemma 2": ("rms", "each", 2),
    }  # fmt: skip


def test_a_model_whose_norm_stands_after_the_sum_says_so() -> None:
    atlas, _, _ = captured(SHAPES["BERT"])
    with pytest.raises(PickError, match="a norm stands after the sum"):
        atlas.output.readout  # noqa: B018


def test_a_model_without_unembedding_says_so() -> None:
    torch.manual_seed(0)
    config = hf.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    inputs = [{"input_ids": torch.tensor([[5, 6, 7]])}]
    atlas = aa.capture(hf.GPT2Model(config).eval(), inputs, progress=False)
    with pytest.raises(PickError, match="this model gives no logits"):
        atlas.output.readout  # noqa: B018
    assert atlas.output.has("decoder", 0)


class Bent(nn.Module):
    """A projection that is not linear."""

    def __init__(self, inner: Any):
        super().__init__()
        self.inner, self.weight = inner, inner.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bent: torch.Tensor = self.inner(x).tanh()
        return bent


def test_a_projection_that_is_not_linear_says_so() -> None:
    torch.manual_seed(0)
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED)).eval()
    model.model.layers[1].self_attn.o_proj = Bent(model.model.layers[1].self_attn.o_proj)
    inputs = [{"input_ids": torch.tensor([[5, 6, 7, 8]])}]
    atlas = aa.capture(model, inputs, progress=False)
    assert atlas.output.has("decoder", 0)
    with pytest.raises(PickError, match=r"L1 move is not known: .*o_proj is not linear"):
        atlas.output.projection("decoder", 1)


def test_projections_can_be_left_out_and_an_unknown_wish_is_one_sentence() -> None:
    atlas, _, _ = captured(SHAPES["GPT-2"], projections="none")
    with pytest.raises(PickError, match="projections='none' was asked for"):
        atlas.output.projection("decoder", 0)
    with pytest.raises(InputError, match="projections is 'some'; give one of auto, all, none"):
        captured(SHAPES["GPT-2"], projections="some")


def test_an_atlas_of_before_says_that_it_has_no_projections() -> None:
    atlas, _, _ = captured(SHAPES["GPT-2"])
    del atlas.manifest.options["output"]
    with pytest.raises(PickError, match="by a version that kept no output projections"):
        atlas.output.projection("decoder", 0)


def test_a_norm_is_told_apart_by_what_it_does() -> None:
    torch.manual_seed(0)
    like = torch.zeros(1, 32)
    layer = nn.LayerNorm(32)
    rms = nn.RMSNorm(32)
    for norm in (layer, rms):
        nn.init.normal_(norm.weight)
    nn.init.normal_(layer.bias)
    for norm, kind in ((layer, "layer"), (rms, "rms")):
        found = norm_map(norm, 32, like)
        assert found is not None and found[0] == kind
        torch.testing.assert_close(found[1], norm.weight.detach(), atol=1e-5, rtol=1e-4)
    assert norm_map(nn.Identity(), 32, like) is None


def test_a_square_matrix_is_not_taken_for_its_transpose() -> None:
    torch.manual_seed(0)
    module = nn.Linear(16, 16)
    found = linear_map(module, 16, 1e-5)
    assert found is not None
    assert torch.equal(found[0], module.weight.T.detach())
