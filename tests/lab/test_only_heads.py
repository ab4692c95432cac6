"""Do exactly the weights of the chosen heads learn, in models of many shapes?

The expected slices are written by hand, from what is known of each architecture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

import attention_atlas as aa
from tests.edits.shapes import BASE, HEADS, SHAPES, WIDTH, WORDS, Shape, text

pytestmark = pytest.mark.filterwarnings("ignore")  # what the models themselves warn of
ALL: Any = slice(None)
Slices = dict[str, list[Any]]  # indexes of a parameter that belong to the heads


def part(head: int, first: int = 0) -> slice:
    return slice(first + head * WIDTH, first + (head + 1) * WIDTH)


def linear(path: str, sides: tuple[str, str, str], head: int, group: int, bias: bool) -> Slices:
    """Rows of three linear layers of their own."""
    units = zip(sides, (head, group, group), strict=True)
    found: Slices = {}
    for side, unit in units:
        found[f"{path}.{side}.weight"] = [(part(unit), ALL)]
        if bias:
            found[f"{path}.{side}.bias"] = [(part(unit),)]
    return found


def gpt2(head: int) -> Slices:
    """Columns of one matrix (in, out) for query, key and value, rows of the projection."""
    path = "transformer.h.1.attn"
    columns = [part(head, 32 * side) for side in range(3)]
    return {
        f"{path}.c_attn.weight": [(ALL, column) for column in columns],
        f"{path}.c_attn.bias": [(column,) for column in columns],
        f"{path}.c_proj.weight": [(part(head), ALL)],
    }


def neox(head: int) -> Slices:
    """Rows of one matrix in which query, key and value of a head stand side by side."""
    path = "gpt_neox.layers.1.attention"
    rows = slice(3 * WIDTH * head, 3 * WIDTH * (head + 1))
    return {
        f"{path}.query_key_value.weight": [(rows, ALL)],
        f"{path}.query_key_value.bias": [(rows,)],
        f"{path}.dense.weight": [(ALL, part(head))],
    }


def bloom(head: int) -> Slices:
    path = "transformer.h.1.self_attention"
    rows = slice(3 * WIDTH * head, 3 * WIDTH * (head + 1))
    return {
        f"{path}.query_key_value.weight": [(rows, ALL)],
        f"{path}.query_key_value.bias": [(rows,)],
        f"{path}.dense.weight": [(ALL, part(head))],
    }


def falcon(head: int) -> Slices:
    """Two groups: the queries of a group's two heads, then its key and its value."""
    path, group = "transformer.h.1.self_attention", 4 * WIDTH * (head // 2)
    rows = [part(head % 2, group), part(2, group), part(3, group)]
    return {
        f"{path}.query_key_value.weight": [(each, ALL) for each in rows],
        f"{path}.dense.weight": [(ALL, part(head))],
    }


def bert(head: int) -> Slices:
    path = "bert.encoder.layer.1.attention"
    return {
        **linear(f"{path}.self", ("query", "key", "value"), head, head, True),
        f"{path}.output.dense.weight": [(ALL, part(head))],
    }


def llama(head: int) -> Slices:
    path = "model.layers.1.self_attn"
    return {
        **linear(path, ("q_proj", "k_proj", "v_proj"), head, head // 2, False),
        f"{path}.o_proj.weight": [(ALL, part(head))],
    }


def t5(head: int) -> Slices:
    path = "decoder.block.1.layer.1.EncDecAttention"
    return {
        **linear(path, ("q", "k", "v"), head, head, False),
        f"{path}.o.weight": [(ALL, part(head))],
    }


@dataclass(frozen=True)
class Expected:
    """A shape, the names of heads that learn, and where their weights are."""

    shape: Shape
    heads: tuple[int, ...]
    slices: Callable[[int], Slices]
    options: dict[str, Any]


def shape_of(make: Callable[[], Any]) -> Shape:
    return Shape(make, text, "L1", "", "", "")


NEOX = shape_of(lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**BASE)))
BLOOM = shape_of(lambda: hf.BloomForCausalLM(hf.BloomConfig(
    vocab_size=WORDS, hidden_size=32, n_layer=2, n_head=HEADS)))  # fmt: skip
FALCON = shape_of(lambda: hf.FalconForCausalLM(hf.FalconConfig(
    vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=HEADS,
    num_kv_heads=2, new_decoder_architecture=True, bias=False)))  # fmt: skip
CASES = {
    "GPT-2": Expected(SHAPES["GPT-2"], (2,), gpt2, {}),
    "BERT": Expected(SHAPES["BERT"], (0, 3), bert, {}),
    "Llama": Expected(SHAPES["Llama"], (2,), llama, {"shared": True}),
    "Llama, a group": Expected(SHAPES["Llama"], (2, 3), llama, {}),
    "GPT-NeoX": Expected(NEOX, (1,), neox, {}),
    "BLOOM": Expected(BLOOM, (1,), bloom, {}),
    "Falcon": Expected(FALCON, (2,), falcon, {"shared": True}),
    "T5": Expected(SHAPES["T5"], (1,), t5, {}),
}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda weights: torch.optim.SGD(weights, 0.1, momentum=0.9, weight_decay=0.1),
    "AdamW": lambda weights: torch.optim.AdamW(weights, 0.01, weight_decay=0.1),
}


def expected_masks(model: nn.Module, case: Expected) -> dict[str, Tensor]:
    weights = dict(model.named_parameters())
    masks: dict[str, Tensor] = {}
    for head in case.heads:
        for name, places in case.slices(head).items():
            mask = masks.setdefault(name, torch.zeros_like(weights[name], dtype=torch.bool))
            for place in places:
                mask[place] = True
    return masks


def loss_of(model: Any, tensors: dict[str, Tensor]) -> Tensor:
    logits: Tensor = model(**tensors).logits
    return logits.log_softmax(-1)[..., 7].mean() * -1


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", CASES)
def test_exactly_the_slices_of_the_heads_change(name: str, optimizer: str) -> None:
    case = CASES[name]
    model, tensors = case.shape.build(), case.shape.tensors()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    learning = OPTIMIZERS[optimizer](model.parameters())  # all of them: decay must not leak
    names = [f"{case.shape.layer}H{head}" for head in case.heads]
    with aa.only_heads(model, names, inputs=first_of(tensors), **case.options) as only:
        for _ in range(3):
            learning.zero_grad()
            loss_of(model, tensors).backward()  # type: ignore[no-untyped-call]
            learning.step()
        slices = dict(only.slices)
    expected = expected_masks(model, case)
    assert set(slices) == set(expected)
    for key, weight in model.named_parameters():
        changed = weight.detach() != before[key]
        assert torch.equal(changed, expected.get(key, torch.zeros_like(changed))), key
        assert torch.equal(slices.get(key, torch.zeros_like(changed)), changed), key


def first_of(tensors: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    return [{name: tensor[:1] for name, tensor in tensors.items()}]


def test_afterwards_all_is_as_before_but_for_what_was_learnt() -> None:
    shape = SHAPES["GPT-2"]
    model, tensors = shape.build(), shape.tensors()
    model.transformer.wte.weight.requires_grad_(False)
    loss_of(model, tensors).backward()  # type: ignore[no-untyped-call]
    needed = {name: weight.requires_grad for name, weight in model.named_parameters()}
    slopes = {name: weight.grad for name, weight in model.named_parameters()}
    hooks = len(model.transformer.h[1].attn._forward_pre_hooks)
    only = aa.only_heads(model, "L1H2")
    assert {name for name, weight in model.named_parameters() if weight.requires_grad} == set(
        only.slices
    )
    assert [name for name, weight in model.named_parameters() if weight.grad is not None] == [
        name for name in slopes if name in only.slices
    ]
    only.restore()
    only.restore()
    assert {name: weight.requires_grad for name, weight in model.named_parameters()} == needed
    for name, weight in model.named_parameters():
        assert weight.grad is slopes[name]
    assert len(model.transformer.h[1].attn._forward_pre_hooks) == hooks
    model.zero_grad()
    loss_of(model, tensors).backward()  # type: ignore[no-untyped-call]
    assert bool((model.transformer.h[0].attn.c_attn.weight.grad != 0).any())
    frozen = ~only.slices["transformer.h.1.attn.c_attn.weight"]
    assert bool((model.transformer.h[1].attn.c_attn.weight.grad[frozen] != 0).any())


def test_an_optimizer_that_is_not_of_torch_calls_hold() -> None:
    model = SHAPES["GPT-2"].build()
    weight = model.transformer.h[1].attn.c_attn.weight
    with aa.only_heads(model, "L1H2") as only:
        before = weight.detach().clone()
        with torch.no_grad():
            weight.mul_(0.5)
        only.hold()
        changed = weight.detach() != before
        assert torch.equal(changed, only.slices["transformer.h.1.attn.c_attn.weight"])
        assert set(map(id, only.parameters())) <= set(map(id, model.parameters()))


def test_layers_with_the_same_weights_learn_together_or_not_at_all() -> None:
    torch.manual_seed(0)
    model = hf.AlbertForMaskedLM(hf.AlbertConfig(**BASE, embedding_size=16)).double().eval()
    with pytest.raises(aa.InputError, match=r"L1H2 shares weights with encoder\.L0H2; name them"):
        aa.only_heads(model, "L1H2")
    with aa.only_heads(model, "L1H2", shared=True) as only:
        assert only.touches == ("encoder.L0H2", "encoder.L1H2")
    aa.only_heads(model, ["L0H2", "L1H2"]).restore()


def test_what_cannot_be_trained_alone_is_said_in_one_sentence() -> None:
    model = SHAPES["Llama"].build()
    with pytest.raises(aa.InputError, match=r"L1H2 shares its key with decoder\.L1H3; name them"):
        aa.only_heads(model, "L1H2")
    with pytest.raises(aa.PickError, match="there is no head L1H9; decoder has heads 0 to 3"):
        aa.only_heads(model, "L1H9")


def test_heads_whose_key_is_spread_before_attention_share_it_all_the_same() -> None:
    model = FALCON.build()
    with pytest.raises(aa.InputError, match=r"L1H2 shares weights with decoder\.L1H3; name them"):
        aa.only_heads(model, "L1H2")
    with aa.only_heads(model, ["L1H2", "L1H3"]) as only:
        assert only.touches == ("decoder.L1H2", "decoder.L1H3")


def test_a_norm_that_all_heads_share_stays_as_it_is() -> None:
    torch.manual_seed(0)
    config = hf.Qwen3Config(**BASE, num_key_value_heads=HEADS, head_dim=WIDTH)
    model = hf.Qwen3ForCausalLM(config).double().eval()
    with aa.only_heads(model, "L1H2") as only:
        assert not [name for name in only.slices if "norm" in name]
        assert len(only.slices) == 4
