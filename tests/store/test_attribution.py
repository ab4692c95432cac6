"""Is what heads add to a logit what a hooked model loses without it, its final norm held?

The reference takes what one head moves from one token out of the final stream, norms what is left
with the scale of before, and reads the logit again. Modules are named here by hand.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_atlas.names.errors import PickError
from tests.edits.shapes import HEADS, made_by, weights_and_values
from tests.record.test_output import ALL, captured
from tests.store.test_contributions import EXACT

NORMS = {
    "GPT-2": ("transformer.ln_f", "layer", 0.0),
    "Llama": ("model.norm", "rms", 0.0),
    "Gemma": ("model.norm", "rms", 1.0),
    "Gemma 2": ("model.norm", "rms", 1.0),
    "ViT": ("vit.layernorm", "layer", 0.0),
    "T5": ("decoder.final_layer_norm", "rms", 0.0),
}


def given_to(model: Any, path: str, tensors: dict[str, Tensor]) -> Tensor:
    """What a module is given in a plain eager run."""
    kept: list[Tensor] = []
    handle = model.get_submodule(path).register_forward_pre_hook(
        lambda _module, args: kept.append(args[0].detach().double())
    )
    with torch.no_grad():
        model(**tensors)
    handle.remove()
    return kept[-1]


def held_norm(x: Tensor, stream: Tensor, kind: str, gain: Tensor, eps: float) -> Tensor:
    """A norm of x with the scale that it has for the stream (shifts cancel in differences)."""
    centred = stream - stream.mean() if kind == "layer" else stream
    x = x - x.mean() if kind == "layer" else x
    return x / (centred.square().mean() + eps).sqrt() * gain


@pytest.mark.parametrize("name", NORMS)
def test_what_a_head_adds_is_what_the_logit_loses_without_it(name: str) -> None:
    shape = ALL[name]
    atlas, model, inputs = captured(shape, keep=EXACT)
    model.set_attn_implementation("eager")
    path, kind, plus = NORMS[name]
    norm: Any = model.get_submodule(path)
    eps = float(getattr(norm, "eps", getattr(norm, "variance_epsilon", 0.0)))
    stream = given_to(model, path, inputs[1])[0]
    position = 0 if name == "ViT" else 3
    head_module = model.classifier if name == "ViT" else model.lm_head
    unembedding = head_module.weight.detach().double() * (32**-0.5 if name == "T5" else 1)
    weights, values = (each[0].double() for each in weights_and_values(shape, model, inputs[1]))
    module: Any = model.get_submodule(shape.projection)
    matrix = (module.weight if name == "GPT-2" else module.weight.T).detach().double()
    rows = matrix.reshape(HEADS, -1, matrix.shape[1])
    found = atlas.attribution(1, 5, 7, position)
    tower = found.layers[-1] if name != "T5" else [x for x in found.layers if x.tower == "cross"][1]
    gain = norm.weight.detach().double() + plus
    after = _after(model, shape.projection, inputs[1], name, position)
    largest = 0.0
    for head in range(HEADS):
        for key in range(weights.shape[2]):
            moved = weights[head, position, key] * (values[head, key] @ rows[head]) * after
            args = (stream[position], kind, gain, eps)
            lost = held_norm(stream[position], *args) - held_norm(stream[position] - moved, *args)
            expected = float(lost @ (unembedding[5] - unembedding[7]))
            largest = max(largest, abs(expected))
            assert tower.adds[head, key] == pytest.approx(expected, abs=1e-5)
    assert largest > 1e-2
    assert found.total == pytest.approx(found.heads()["adds"].sum(), abs=1e-4)


def _after(model: Any, projection: str, tensors: Any, name: str, position: int) -> Tensor | float:
    """What one unit of Gemma 2's attention becomes after the norm behind it, held."""
    if name != "Gemma 2":
        return 1.0
    kept: list[Tensor] = []

    def keep(output: Tensor) -> Tensor:
        kept.append(output.double())
        return output

    with made_by(projection, model, keep), torch.no_grad():
        model(**tensors)
    norm = model.model.layers[1].post_attention_layernorm
    given = kept[-1][0, position]
    gain: Tensor = 1 + norm.weight.detach().double()
    scale: Tensor = gain / (given.square().mean() + norm.eps).sqrt()
    return scale


def test_the_sources_of_all_heads_add_up_to_the_whole() -> None:
    atlas, _, _ = captured(ALL["Llama"])
    found = atlas.attribution(0)
    assert found.tokens().sum() == pytest.approx(found.total, abs=1e-5)
    assert len(found.heads()) == 2 * HEADS and found.missing == ()
    t5, _, _ = captured(ALL["T5"])
    assert t5.attribution(0).missing == ("encoder.L0", "encoder.L1")


def test_the_difference_of_two_tokens_is_the_difference_of_their_attributions() -> None:
    atlas, _, _ = captured(ALL["GPT-2"])
    both, one, two = (atlas.attribution(0, *pair, position=4) for pair in ((5, 9), (5,), (9,)))
    for layer, first, second in zip(both.layers, one.layers, two.layers, strict=True):
        np.testing.assert_allclose(layer.adds, first.adds - second.adds, atol=1e-5)


def test_a_token_that_is_not_there_is_one_sentence() -> None:
    atlas, _, _ = captured(ALL["GPT-2"])
    with pytest.raises(PickError, match="no token 'zebra' occurs in the inputs"):
        atlas.attribution(0, "zebra")
    with pytest.raises(PickError, match="unembedding of token 123456 is not kept"):
        atlas.attribution(0, 123456)
    vit, _, _ = captured(ALL["ViT"])
    with pytest.raises(PickError, match="no class is named 'zebra'; there are LABEL_0"):
        vit.attribution(0, "zebra")
    assert vit.attribution(0, "LABEL_2", "LABEL_1").position == 0
