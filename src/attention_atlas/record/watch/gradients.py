"""How much would the loss change if a head's output grew or shrank a little?

Every head gets a gate of one on what it moves; the size of the loss's slope along the gate is its
gradient importance (Michel et al. 2019). Nothing of the model is changed.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_atlas.models.encode import encode
from attention_atlas.models.inputs import Input
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import InputError, ModelError
from attention_atlas.record.watch.door import Recorder
from attention_atlas.store.reader import StoredAtlas

MASKED = 0.15  # of the tokens, for models that fill in masks


class Gated(Recorder):
    """Multiplies what each head moves by a gate of one, and keeps the gates."""

    def __init__(self, model: Any, way: str):
        super().__init__(model, way=way)
        self.gates: dict[str, Tensor] = {}

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        output, weights = super().attend(module, query, key, value, mask, options)
        gate = torch.ones(output.shape[2], requires_grad=True, device=output.device)
        self.gates[self.calls[-1].module] = gate
        return output * gate[None, None, :, None].to(output.dtype), weights


def gradient_importance(
    atlas: StoredAtlas, loaded: Loaded, seed: int = 0
) -> npt.NDArray[np.float64]:
    """(inputs, heads): |∂ loss / ∂ gate|, heads in the order of `atlas.heads()`."""
    way = atlas.receipt.how
    if way not in ("named", "eager"):
        raise ModelError(
            f"{loaded.name} writes its attention out by hand, so its heads cannot be given gates"
        )
    dice = torch.Generator().manual_seed(seed)
    rows = []
    was_training = loaded.model.training
    loaded.model.eval()
    try:
        for number, row in atlas.inputs().iterrows():
            rows.append(_slopes(atlas, loaded, way, _text(row, int(str(number))), dice))
    finally:
        loaded.model.train(was_training)
    return np.stack(rows)


def _text(row: Any, number: int) -> Input:
    if row["kind"] not in ("text", "pair"):
        raise InputError(
            f"input {number} is of kind {row['kind']}; gradient importance needs texts"
        )
    second = row["second"] if row["kind"] == "pair" else None
    return Input(row["kind"], text=row["text"], second=second)


def _slopes(
    atlas: StoredAtlas, loaded: Loaded, way: str, given: Input, dice: torch.Generator
) -> npt.NDArray[np.float64]:
    tensors = {
        name: one.to(loaded.model.device) for name, one in encode(loaded, given).tensors.items()
    }
    gated = Gated(loaded.model, way)
    with torch.enable_grad(), gated:
        loss = _loss(loaded, tensors, atlas.towers[0].role, dice)
        names = list(gated.gates)
        slopes = torch.autograd.grad(loss, [gated.gates[name] for name in names])
    by_module = {
        name: slope.abs().double().cpu().numpy() for name, slope in zip(names, slopes, strict=True)
    }
    return np.concatenate(
        [
            by_module.get(layer.module, np.full(layer.heads, np.nan))
            for tower in atlas.towers
            for layer in tower.layers
        ]
    )


def _loss(loaded: Loaded, tensors: dict[str, Tensor], role: str, dice: torch.Generator) -> Tensor:
    """Nats a token: of the next token, or of masked ones."""
    ids = tensors["input_ids"]
    masks = role != "causal"
    if masks:
        tensors, hidden = _masked(loaded, tensors, dice)
    logits = getattr(loaded.model(**tensors), "logits", None)
    if logits is None or logits.dim() != 3 or logits.shape[-1] < loaded.model.config.vocab_size:
        raise ModelError(
            f"{type(loaded.model).__name__} predicts no tokens, so it has no loss to take a "
            "gradient of; give a model with its language head"
        )
    if masks:
        return F.cross_entropy(logits[hidden], ids[hidden])
    return F.cross_entropy(logits[0, :-1], ids[0, 1:])


def _masked(
    loaded: Loaded, tensors: dict[str, Tensor], dice: torch.Generator
) -> tuple[dict[str, Tensor], Tensor]:
    mask = getattr(loaded.tokenizer, "mask_token_id", None)
    if mask is None:
        raise ModelError(f"{loaded.name} has no mask token, so it has no loss on a text of ours")
    ids = tensors["input_ids"]
    hidden = torch.rand(ids.shape, generator=dice).to(ids.device) < MASKED
    hidden[0, int(torch.randint(1, max(2, ids.shape[1] - 1), (1,), generator=dice))] = True
    return {**tensors, "input_ids": torch.where(hidden, mask, ids)}, hidden
