"""Six small random models, and where in each the surgeon cuts: known here by name, by hand.

In float64: then only a wrong edit makes a difference. What some models compute in float32 whatever
they are given (norms, softmax) may be off by one rounding of float32 (6e-8) in each of two layers,
which stays below 1e-6 of the largest logit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf
from torch import Tensor

WORDS, HEADS, WIDTH, LAYERS = 99, 4, 8, 2
TOLERANCE = 1e-6  # of the largest logit
BASE: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "intermediate_size": 48, "max_position_embeddings": 64,
}  # fmt: skip
SIDES: dict[str, Any] = {
    "vocab_size": WORDS, "d_model": 32, "encoder_layers": LAYERS, "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1,
}  # fmt: skip
T5: dict[str, Any] = {
    "vocab_size": WORDS, "d_model": 32, "d_kv": WIDTH, "d_ff": 48, "num_layers": LAYERS,
    "num_heads": HEADS, "decoder_start_token_id": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How one model is made, what it reads, and the modules of one of its layers."""

    make: Callable[[], Any]
    inputs: Callable[[torch.Generator], dict[str, Tensor]]
    layer: str  # its name in ours, as in cross.L1
    maps: str  # under which name the model returns its weights
    projection: str  # path of the output projection
    value: str  # path of the module that makes values
    first: int = 0  # column of its output where the values begin
    query: str = ""  # path of the module that makes queries, where nothing turns them after
    groups: int = HEADS

    def build(self, implementation: str | None = None) -> Any:
        torch.manual_seed(0)
        model = self.make().double().eval()
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.2)
        if implementation:
            model.set_attn_implementation(implementation)
        return model

    def tensors(self, seed: int = 1) -> dict[str, Tensor]:
        return self.inputs(torch.Generator().manual_seed(seed))


def ids(dice: torch.Generator, n: int) -> Tensor:
    return torch.randint(10, WORDS, (2, n), generator=dice)


def text(dice: torch.Generator) -> dict[str, Tensor]:
    return {"input_ids": ids(dice, 7)}


def text_to_text(dice: torch.Generator) -> dict[str, Tensor]:
    return {"input_ids": ids(dice, 7), "decoder_input_ids": ids(dice, 5)}


def picture(dice: torch.Generator) -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(2, 3, 32, 32, generator=dice, dtype=torch.float64)}


def sound(dice: torch.Generator) -> dict[str, Tensor]:
    heard = torch.randn(2, 8, 24, generator=dice, dtype=torch.float64)
    return {"input_features": heard, "decoder_input_ids": ids(dice, 5)}


SHAPES = {
    "GPT-2": Shape(
        lambda: hf.GPT2LMHeadModel(hf.GPT2Config(
            vocab_size=WORDS, n_embd=32, n_layer=LAYERS, n_head=HEADS, n_positions=64,
            bos_token_id=1, eos_token_id=2)),
        text, "L1", "attentions", "transformer.h.1.attn.c_proj", "transformer.h.1.attn.c_attn",
        first=64),
    "BERT": Shape(
        lambda: hf.BertForMaskedLM(hf.BertConfig(**BASE)), text, "L1", "attentions",
        "bert.encoder.layer.1.attention.output.dense", "bert.encoder.layer.1.attention.self.value",
        query="bert.encoder.layer.1.attention.self.query"),
    "Llama": Shape(
        lambda: hf.LlamaForCausalLM(hf.LlamaConfig(
            **BASE, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)),
        text, "L1", "attentions", "model.layers.1.self_attn.o_proj",
        "model.layers.1.self_attn.v_proj", groups=2),
    "ViT": Shape(
        lambda: hf.ViTForImageClassification(hf.ViTConfig(
            hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=48, image_size=32, patch_size=8, num_labels=9)),
        picture, "L1", "attentions", "vit.layers.1.attention.o_proj",
        "vit.layers.1.attention.v_proj", query="vit.layers.1.attention.q_proj"),
    "T5": Shape(
        lambda: hf.T5ForConditionalGeneration(hf.T5Config(**T5)), text_to_text, "cross.L1",
        "cross_attentions", "decoder.block.1.layer.1.EncDecAttention.o",
        "decoder.block.1.layer.1.EncDecAttention.v",
        query="decoder.block.1.layer.1.EncDecAttention.q"),
    "Whisper": Shape(
        lambda: hf.WhisperForConditionalGeneration(hf.WhisperConfig(
            **SIDES, num_mel_bins=8, max_source_positions=12, max_target_positions=64)),
        sound, "decoder.L1", "decoder_attentions", "model.decoder.layers.1.self_attn.out_proj",
        "model.decoder.layers.1.self_attn.v_proj"),
}  # fmt: skip


def split(tensor: Tensor, heads: int) -> Tensor:
    """Heads side by side, (…, H · D), as (…, H, D)."""
    return tensor.reshape(*tensor.shape[:-1], heads, -1)


def keeping(kept: list[Tensor]) -> Callable[[Tensor], Tensor]:
    """A change that changes nothing and keeps what it sees."""

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    return keep


@contextmanager
def projection_given(
    shape: Shape, model: Any, change: Callable[[Tensor], Tensor]
) -> Iterator[None]:
    """Changes what the output projection is given, (B, N, H, D)."""

    def hook(_module: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        heads = split(args[0], HEADS).clone()
        return change(heads).flatten(-2), *args[1:]

    handle = model.get_submodule(shape.projection).register_forward_pre_hook(hook)
    yield
    handle.remove()


@contextmanager
def made_by(path: str, model: Any, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Changes what a module makes."""
    handle = model.get_submodule(path).register_forward_hook(
        lambda _module, _args, output: change(output.clone())
    )
    yield
    handle.remove()


def first(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The first input of a batch."""
    return {name: tensor[:1] for name, tensor in tensors.items()}


def logits(model: Any, tensors: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        output: Tensor = model(**tensors).logits
    return output


def weights_and_values(shape: Shape, model: Any, tensors: Any) -> tuple[Tensor, Tensor]:
    """What a plain eager run has in the layer: weights (B, H, N, M), values (B, H, M, D)."""
    kept: list[Tensor] = []
    with made_by(shape.value, model, keeping(kept)), torch.no_grad():
        maps = model(**tensors, output_attentions=True)[shape.maps]
    values = split(kept[-1][..., shape.first :], shape.groups).transpose(1, 2)
    return maps[1], values.repeat_interleave(HEADS // shape.groups, 1)


def assert_close(mine: Tensor, expected: Tensor, plain: Tensor) -> None:
    """The edit is the surgery, and the surgery changes something."""
    bound = TOLERANCE * float(expected.abs().max())
    assert float((mine - expected).abs().max()) <= bound
    assert float((expected - plain).abs().max()) > 1e3 * bound
