"""How much would the loss change if a head's output grew or shrank a little?

The output of every head is multiplied by a gate of one, at each visit to its module. The absolute
gradient of the loss at the gate is the head's gradient importance (Michel et al. 2019). The model
is not changed.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from attention_atlas.models.encode import encode
from attention_atlas.models.inputs import Input
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import InputError, ModelError
from attention_atlas.record.watch.door import Door, Passing
from attention_atlas.store.reader import StoredAtlas

MASKED = 0.15  # of the tokens, for models that fill in masks


class Gates:
    """A hook that multiplies each head's output by a gate of one, and keeps the gates."""

    needs_weights = False

    def __init__(self) -> None:
        self.by_visit: dict[tuple[str, int], Tensor] = {}  # of (module, visit): (H,)

    def before(self, passing: Passing) -> None:
        """Do nothing: the gates come after attention."""

    def after(self, passing: Passing) -> None:
        """Multiply the output by the gates."""
        output = passing.output
        key = passing.site.module, passing.site.visit
        if key not in self.by_visit:  # all parts of one visit share their gates
            fine = torch.promote_types(output.dtype, torch.float32)  # slopes are sums
            ones = torch.ones(output.shape[2], dtype=fine, device=output.device)
            self.by_visit[key] = ones.requires_grad_()
        passing.output = output * self.by_visit[key][None, None, :, None].to(output.dtype)

    def slopes(self, loss: Tensor) -> dict[tuple[str, int], npt.NDArray[np.float64]]:
        """Return |∂ loss / ∂ gate| of each visit, (H,)."""
        slopes = torch.autograd.grad(loss, list(self.by_visit.values()))
        return {
            key: slope.abs().double().cpu().numpy()
            for key, slope in zip(self.by_visit, slopes, strict=True)
        }


def gradient_importance(
    atlas: StoredAtlas, loaded: Loaded, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Return |∂ loss / ∂ gate|, (inputs, heads), heads in the order of `atlas.heads()`."""
    way = atlas.receipt.how
    if way not in ("named", "eager"):
        raise ModelError(
            f"{loaded.name} does not call transformers' attention function, so its heads cannot be "
            "given gates; measure with gradients=False, or on the command line without --model"
        )
    dice = torch.Generator().manual_seed(seed)
    gates = Gates()
    door = Door(loaded.model, [gates], way=way, seed=seed, gradients=True)
    rows = []
    for number, row in atlas.inputs().iterrows():
        tensors = _tensors(atlas, loaded, _text(row, int(str(number))))
        gates.by_visit.clear()
        with door.open():
            slopes = gates.slopes(_loss(loaded, tensors, atlas.towers[0].role, dice))
        rows.append(
            np.concatenate(
                [
                    slopes.get((layer.module, layer.visit), np.full(layer.heads, np.nan))
                    for tower in atlas.towers
                    for layer in tower.layers
                ]
            )
        )
    return np.stack(rows)


def _text(row: Any, number: int) -> Input:
    if row["kind"] not in ("text", "pair"):
        raise InputError(
            f"input {number} is of kind {row['kind']}; gradient importance needs texts"
        )
    second = row["second"] if row["kind"] == "pair" else None
    return Input(row["kind"], text=row["text"], second=second)


def _tensors(atlas: StoredAtlas, loaded: Loaded, given: Input) -> dict[str, Tensor]:
    """Return the tensors of an input as it was captured, on the model's device."""
    truncate = bool(atlas.manifest.options.get("truncate"))
    tensors = encode(loaded, given, truncate=truncate).tensors
    return {name: tensor.to(loaded.model.device) for name, tensor in tensors.items()}


def _loss(loaded: Loaded, tensors: dict[str, Tensor], role: str, dice: torch.Generator) -> Tensor:
    """Return the loss in nats per token: of the next token, or of masked tokens."""
    ids = tensors["input_ids"]
    masks = role != "causal"
    if masks:
        tensors, hidden = _masked(loaded, tensors, dice)
    logits = getattr(loaded.model(**tensors), "logits", None)
    if logits is None or logits.dim() != 3 or logits.shape[-1] < loaded.model.config.vocab_size:
        raise ModelError(
            f"{type(loaded.model).__name__} predicts no tokens, so it has no loss; "
            "give a model with its language head"
        )
    if masks:
        return F.cross_entropy(logits[hidden], ids[hidden])
    return F.cross_entropy(logits[0, :-1], ids[0, 1:])


def _masked(
    loaded: Loaded, tensors: dict[str, Tensor], dice: torch.Generator
) -> tuple[dict[str, Tensor], Tensor]:
    mask = getattr(loaded.tokenizer, "mask_token_id", None)
    if mask is None:
        raise ModelError(f"{loaded.name} has no mask token, so it has no loss on a plain text")
    ids = tensors["input_ids"]
    hidden = torch.rand(ids.shape, generator=dice).to(ids.device) < MASKED
    hidden[0, int(torch.randint(1, max(2, ids.shape[1] - 1), (1,), generator=dice))] = True
    return {**tensors, "input_ids": torch.where(hidden, mask, ids)}, hidden
