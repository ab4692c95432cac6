"""Do edits work while a model generates with a cache, where rows arrive one at a time?

A run with a cache must give what a run over the whole text gives, row by row, and positions are
those of the whole text.
"""

from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor

import attention_atlas as aa
from tests.edits.shapes import BASE, SHAPES, first

NEW = 5
IDS = torch.tensor([[5, 17, 3, 42]])
TEXT = {"input_ids": torch.tensor([[9, 8, 7, 6]])}
EDITS: dict[str, list[Any]] = {
    "ablate": [aa.ablate("L1H2")],
    "one position of the generated text": [aa.scale("L1H2", -4.0, positions=[6])],
    "mask": [aa.mask("L1", token=1), aa.mask("L0H1", edges=[(6, 5), (5, 5)])],
    "pattern": [aa.pattern(["L0H1", "L1H3"], "previous"), aa.pattern("L1H0", "window")],
    "neuron": [aa.neuron("L1", "key", 3, 2.0, positions=[2, 5]), aa.neuron("L0", "query", 1, -2.0)],
    "value": [aa.neuron("L0", "value", 2, 2.0, positions=[4])],
    "resample": [aa.ablate("L0", by="resample", from_=[TEXT])],
    "patch": [aa.patch("L0", "key", from_=TEXT), aa.patch("L1H1", "pattern", from_=TEXT)],
}
# Over the whole text, the tokens of the prompt correspond to those that are patched from.
SAME = [(token, token) for token in range(4)]
WHOLE = {
    "patch": [
        aa.patch("L0", "key", from_=TEXT, align=SAME),
        aa.patch("L1H1", "pattern", from_=TEXT, align=SAME),
    ]
}


def written(model: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """What a model writes, and the logits of each step."""
    output = model.generate(
        IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=NEW, min_new_tokens=NEW,
        do_sample=False, pad_token_id=0, eos_token_id=None, output_logits=True,
        return_dict_in_generate=True, **options,
    )  # fmt: skip
    return output.sequences, torch.stack(output.logits, 1)


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
@pytest.mark.parametrize("kind", EDITS)
@pytest.mark.parametrize("cache", [{}, {"cache_implementation": "static"}], ids=["grows", "static"])
@pytest.mark.filterwarnings("ignore")
def test_with_a_cache_a_model_writes_what_it_writes_without(
    name: str, kind: str, cache: dict[str, Any]
) -> None:
    model = SHAPES[name].build()
    plain, _ = written(model)
    with aa.edit(model, EDITS[kind]):
        ids, logits = written(model, **cache)
    with aa.edit(model, WHOLE.get(kind, EDITS[kind])), torch.no_grad():
        whole = model(ids[:, :-1]).logits[:, IDS.shape[1] - 1 :]
    # Rotary positions and norms are float32: see shapes.py.
    assert float((logits - whole).abs().max()) <= 1e-6 * float(whole.abs().max())
    assert ids.shape == plain.shape


@pytest.mark.filterwarnings("ignore")
def test_a_decoder_writes_with_its_cross_attention_edited() -> None:
    shape = SHAPES["T5"]
    model, given = shape.build(), first(shape.tensors())
    edits = [aa.pattern("cross.L1H2", "even"), aa.mask("encoder.L0", token=1)]

    def write(**options: Any) -> Tensor:
        ids: Tensor = model.generate(
            given["input_ids"], max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, **options
        )
        return ids

    with aa.edit(model, edits, inputs=given):
        assert torch.equal(write(), write(use_cache=False))


@pytest.mark.parametrize("kind", [kind for kind in EDITS if kind != "patch"])
@pytest.mark.filterwarnings("ignore")
def test_in_a_cache_that_forgets_positions_are_still_those_of_the_text(kind: str) -> None:
    """Mistral keeps the last four keys alone, so the first key of a call is not the first token."""
    torch.manual_seed(0)
    config = hf.MistralConfig(
        **BASE, num_key_value_heads=2, sliding_window=4, pad_token_id=0, bos_token_id=1,
        eos_token_id=2,
    )  # fmt: skip
    model = hf.MistralForCausalLM(config).double().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    with aa.edit(model, EDITS[kind]), torch.no_grad():
        ids, logits = written(model)
        whole = model(ids[:, :-1]).logits[:, IDS.shape[1] - 1 :]
    assert float((logits - whole).abs().max()) <= 1e-6 * float(whole.abs().max())
