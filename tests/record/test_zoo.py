"""Is all attention of every architecture seen, exactly, under the right names?

What is expected comes from elsewhere than the recorder: from a table written by hand, from a
softmax written out below, and from what the plain model returns when asked for its attention.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import Encoded
from attention_atlas.names.errors import ModelError
from attention_atlas.record.prove.receipt import Trial, try_ways
from attention_atlas.record.watch.call import Call
from tests.record.zoo import (
    DECODERS,
    ENCODERS,
    HEARING,
    SEEING,
    SEEING_AND_READING,
    TWO_SIDED,
    ZOO,
)

Towers = dict[str, list[int]]

pytestmark = pytest.mark.filterwarnings("ignore")  # what the models themselves warn of

ENCODER: Towers = {"encoder": [0, 1, 2]}
DECODER: Towers = {"decoder": [0, 1, 2]}
BOTH: Towers = {"encoder": [0, 1], "decoder": [0, 1], "cross": [0, 1]}
VISION_TEXT: Towers = {"vision": [0, 1, 2], "text": [0, 1, 2]}
PACKED: Towers = {"vision": [0, 1], "text": [0, 1, 2]}
WINDOWS: Towers = {"encoder": [0, 1, 2, 3]}  # two stages of two layers: numbers run on
PYRAMID: Towers = {"encoder": [0, 1]}

# Which layers of which towers have attention, as the settings in the zoo say.
LAYERS: dict[str, Towers] = (
    dict.fromkeys(ENCODERS, ENCODER)
    | dict.fromkeys(DECODERS, DECODER)
    | dict.fromkeys(TWO_SIDED, BOTH)
    | dict.fromkeys(HEARING, ENCODER)
    | dict.fromkeys(SEEING, ENCODER)
    | dict.fromkeys(SEEING_AND_READING, VISION_TEXT)
    | dict.fromkeys(("Whisper", "Moonshine", "Speech2Text", "DETR"), BOTH)
    | dict.fromkeys(("Swin", "Swin v2", "Donut"), WINDOWS)
    | dict.fromkeys(("SegFormer", "GLPN", "PVT", "Hiera"), PYRAMID)
    | dict.fromkeys(("Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL"), PACKED)
    | {
        "GPT-Neo": {"decoder": [0, 1]},
        "Gemma 3n": {"decoder": [0, 1, 2, 3]},
        "MiniMax": {"decoder": [1]},
        "Jamba": {"decoder": [1]},
        "Zamba": {"decoder": [2, 4]},
        "Zamba2": {"decoder": [1, 3]},
        "Bamba": {"decoder": [1]},
        "Falcon-H1": {"decoder": [0, 1, 2]},
        "Granite-MoE hybrid": {"decoder": [1]},
        "LFM2": {"decoder": [1]},
        "Nemotron-H": {"decoder": [1, 3]},
        "Qwen3-Next": {"decoder": [3]},
        "Qwen3.5": {"decoder": [3]},
        "RecurrentGemma": {"decoder": [2]},
        "TimeSformer": {"encoder": [0, 1, 2, 3, 4, 5]},  # time and space in each layer
        "ViLT": ENCODER,
        "Qwen3.5 with pictures": {"vision": [0, 1], "text": [3]},
        "BLIP-2": {
            "vision": [0, 1, 2], "qformer": [0, 1, 2], "cross": [0, 2], "decoder": [0, 1],
        },
        "Mllama": {"vision": [0, 1, 2], "text": [0, 2], "cross": [1, 3]},
        "ViT to GPT-2": {"encoder": [0, 1, 2], "decoder": [0, 1, 2], "cross": [0, 1, 2]},
    }
)  # fmt: skip

# Models that do not call transformers' attention function but write attention out; and one that
# does, if the implementation is called "eager". All others are seen by our function's own name.
TRACED = (
    "Megatron-BERT", "RemBERT", "DeBERTa", "DeBERTa-v2", "MPNet", "RoFormer", "ConvBERT",
    "I-BERT", "Funnel", "SqueezeBERT", "XLNet", "FlauBERT", "XLM", "BigBird full", "GPT-1",
    "GPT-Neo", "GPT-J", "CodeGen", "BLOOM", "MPT", "Falcon", "Falcon with ALiBi", "XGLM", "MVP",
    "FSMT", "BigBird-Pegasus", "WavLM", "Data2Vec vision", "Swin v2", "Donut", "GLPN", "PVT",
    "Hiera", "TimeSformer", "BLIP", "ViLT", "GIT",
)  # fmt: skip
HOW = dict.fromkeys(TRACED, "trace") | {"DeepSeek-V3.2": "eager"}

# Every model that is not exact by one of the first three ways, and why.
WEIGHTS_ONLY = {
    "Longformer": "multiplies queries with keys chunk by chunk along the diagonal",
    "LED": "its encoder is Longformer's",
    "BigBird sparse": "gathers blocks of keys, some of them at random",
}
INEXACT = {
    "LongT5": "its encoder cuts the text into blocks that look at their neighbours",
    "Nyströmformer": "never computes its weights; a product of three small ones stands for them",
    "Pegasus-X": "its encoder joins blocks and global tokens before the softmax; we see a part",
    "ProphetNet": "its decoder runs further streams that predict ahead and are no tokens of a text",
}
REFUSED = {
    "Reformer": "hashes queries into buckets, sorts them by it, and returns maps of those",
    "Mamba": "a state space model",
    "FNet": "mixes tokens by Fourier transform",
}
NOT_EXACT = WEIGHTS_ONLY | INEXACT | REFUSED

# What `output_attentions` gives of these cannot be laid beside ours.
INCOMPARABLE = {
    "Falcon with ALiBi": "run eagerly it adds its bias twice, as a plain run does not",
    "SqueezeBERT": "scores from before the softmax",
    "WavLM": "the mean over heads in place of each",
    "ViLT": "draws its patches in a new order at every run",
    "Swin": "one map a stage, window by window",
    "Swin v2": "one map a stage, window by window",
    "Donut": "one map a stage, window by window",
    "Hiera": "window by window",
    "TimeSformer": "space only, frame by frame",
}
# One of each kind: `make test` runs these, `make full` all others.
DOZEN = (
    "BERT",  # an encoder
    "ALBERT",  # layers that share their weights
    "DeBERTa",  # attention written out, with relative positions
    "GPT-2",  # a decoder with one projection for query, key and value
    "Llama",  # heads in groups, rotary positions
    "Gemma 2",  # a soft cap and sliding windows
    "GPT-OSS",  # sinks
    "DeepSeek-V3",  # keys and values of different widths through a bottleneck
    "Jamba",  # attention in some layers only
    "T5",  # encoder, decoder and cross-attention with biases
    "Whisper",  # sound
    "ViT",  # a picture
    "Swin",  # windows of a picture
    "LLaVA",  # a picture in a text
    "Qwen2-VL",  # pictures packed into one sequence
    "Longformer",  # weights alone
    "Pegasus-X",  # not exact
    "Mamba",  # refused
)
MIXED = ("GIT", "ViLT")  # text and picture in one sequence, which is neither's stream
UNNAMED = ("encoder", "decoder", "text")  # towers that a model may return as its own


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Such small products take many times longer when threads share them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def some(names: Iterable[str]) -> list[Any]:
    """Returns the names as parameters; those outside the dozen are marked for the full run."""
    return [name if name in DOZEN else pytest.param(name, marks=pytest.mark.full) for name in names]


def look(name: str) -> tuple[Trial, list[Encoded]]:
    items = ZOO[name].feed(torch.Generator().manual_seed(1))
    return try_ways(Loaded(ZOO[name].build(), None, name, None), items), items


def towers(plan: Trial) -> Towers:
    found: Towers = {}
    for layer in plan.receipt.layers:
        found.setdefault(layer.tower, []).append(layer.layer)
    return found


@pytest.mark.parametrize("name", some(name for name in ZOO if name not in NOT_EXACT))
def test_what_is_recorded_is_what_the_model_computed(name: str) -> None:
    plan, items = look(name)
    assert plan.receipt.exact, plan.receipt
    assert plan.receipt.how == HOW.get(name, "named")
    assert towers(plan) == LAYERS[name]
    if name not in MIXED:
        assert set(items[0].streams) <= {ends.queries for ends in plan.ends.values()}
    assert_no_pads(name, plan, items)
    if name not in INCOMPARABLE:
        assert_as_returned(name, plan, items[0])


def assert_no_pads(name: str, plan: Trial, items: list[Encoded]) -> None:
    """The shorter input, seen in a batch, has maps as large as when it is probed alone."""
    alone = try_ways(Loaded(ZOO[name].build(), None, name, None), items[1:])
    assert sizes(plan.own[1]) == sizes(alone.own[0])


def sizes(maps: dict[Any, npt.NDArray[np.float32]]) -> dict[Any, tuple[int, ...]]:
    return {layer: weights.shape[1:] for layer, weights in maps.items()}


def assert_as_returned(name: str, plan: Trial, item: Encoded) -> None:
    with torch.no_grad():
        outputs = ZOO[name].build("eager")(**item.tensors, output_attentions=True)
    maps = dict(returned(outputs))
    assert maps
    compared = 0
    for layer in plan.layers:
        tower = plan.names[layer.tower_key]
        mine = maps.get(tower) or (maps.get("") if tower in UNNAMED else None)
        if mine is None:
            continue
        place = layer.number
        if len(mine) == len(LAYERS[name][tower]):  # layers without attention have no map
            place = LAYERS[name][tower].index(layer.number)
        torch.testing.assert_close(
            softmax_by_hand(layer.first), mine[place][0].double(), atol=1e-5, rtol=0
        )
        compared += 1
    assert compared >= min(len(numbers) for numbers in LAYERS[name].values())


def returned(outputs: Any, part: str = "") -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Maps by tower, which the names of fields begin with; "" where they do not."""
    for field, value in outputs.items():
        start = part or field.partition("_")[0]
        if field.endswith("attentions") and value:
            maps = [one for one in value if isinstance(one, torch.Tensor)]
            tower = "cross" if field.startswith("cross") else start
            yield "" if tower in ("attentions", "language") else tower, maps
        elif hasattr(value, "items"):
            yield from returned(value, start)


def softmax_by_hand(call: Call) -> torch.Tensor:
    """(H, N, M): the weights of the first input from what was recorded, in float64."""
    query, key = call.query[0].double(), call.key[0].double()
    key = key.repeat_interleave(len(query) // len(key), dim=0)
    logits = call.scale * torch.einsum("hnd,hmd->hnm", query, key)
    if call.softcap:
        logits = torch.tanh(logits / call.softcap) * call.softcap
    if call.causal and call.mask is None:
        logits += torch.full(logits.shape[1:], -torch.inf).triu(1)
    for term in (call.bias, call.mask):
        if term is not None and term.dtype == torch.bool:
            logits = logits.masked_fill(~term[0, ..., : key.shape[1]], -torch.inf)
        elif term is not None:
            logits = logits + term[0, ..., : key.shape[1]].double()
    powers = logits.exp()
    total = powers.sum(-1, keepdim=True)
    if call.sink is not None:
        total = total + call.sink.double().exp()[:, None, None]
    return powers / total


@pytest.mark.parametrize("name", some(WEIGHTS_ONLY))
def test_of_what_no_way_explains_the_weights_alone_are_kept(name: str) -> None:
    plan, _ = look(name)
    assert plan.receipt.how == "outputs"
    assert all(call.query.shape[-1] == 0 for layer in plan.layers for call in layer.steps[0])


@pytest.mark.parametrize("name", some(INEXACT))
def test_a_model_that_nothing_explains_is_not_called_exact(name: str) -> None:
    plan, _ = look(name)
    assert not plan.receipt.exact
    assert plan.receipt.missing or any(layer.reason for layer in plan.receipt.layers)


@pytest.mark.parametrize("name", some(REFUSED))
def test_a_model_without_attention_that_we_can_place_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="no attention could be captured"):
        look(name)


def test_the_zoo_is_as_large_as_was_asked_for() -> None:
    classes = {
        one.model.__name__ if one.model else MODEL_MAPPING_NAMES[one.config.model_type]
        for one in ZOO.values()
    }
    assert len(ZOO) >= 110
    assert len(classes) >= 100
    assert len(ZOO) - len(NOT_EXACT) >= 105
    assert set(NOT_EXACT) | set(INCOMPARABLE) | set(HOW) | set(DOZEN) <= set(ZOO)
