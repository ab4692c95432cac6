"""What is the loss of a model on an input, and which of its predictions count?

next    each token from those before it; in an encoder–decoder each token of the target
masked  some tokens of a text that are hidden, for models that look both ways: 15 % of them, one at
        least, never a special token, drawn by seed and number of the input
label   the answer that the plain model itself gives, for models that name a class: of the input or
        of each token

The loss of an input is the mean of −log p over the predictions that count, in nats.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_atlas.models.batch import placed
from attention_atlas.models.encode import Encoded
from attention_atlas.models.load import Loaded
from attention_atlas.models.signature import signature
from attention_atlas.names.errors import InputError, ModelError
from attention_atlas.record.prove.layer_errors import bound_of
from attention_atlas.record.watch.gradients import MASKED
from attention_atlas.record.watch.setting import Setting


@dataclass(frozen=True)
class PredictionTask:
    """What a model predicts."""

    kind: str  # "next", "masked" or "label"
    ids: str  # the tensor whose tokens are predicted
    mask: int = -1  # the id that hides a token
    seed: int = 0


@dataclass(frozen=True)
class Group:
    """Inputs of one shape that run together, and what is to be predicted of them."""

    numbers: tuple[int, ...]  # of the inputs in the corpus
    tensors: dict[str, Tensor]
    counted: Tensor  # (B, N) which predictions count
    targets: Tensor  # (B, N) what would be right

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def long(self) -> int:
        """Return the largest number of tokens in a tensor."""
        return max(tensor.shape[1] for tensor in self.tensors.values() if tensor.dim() > 1)


def task_of(loaded: Loaded, first: Encoded, seed: int) -> PredictionTask:
    """Find out what a model predicts, by asking it; return the task."""
    tensors = _given(loaded, first)
    logits = _logits(loaded, tensors)
    if logits is None or logits.dim() not in (2, 3):
        raise ModelError(
            f"{type(loaded.model).__name__} predicts neither tokens nor classes, so it has no "
            "loss; give a model with its head"
        )
    ids = "decoder_input_ids" if signature(loaded.model).two_sided else "input_ids"
    vocabulary = getattr(loaded.model.config.get_text_config(), "vocab_size", None)
    if logits.dim() == 2 or ids not in tensors or logits.shape[-1] < (vocabulary or 0):
        return PredictionTask("label", ids, seed=seed)
    if logits.shape[:2] != tensors[ids].shape:
        raise ModelError(
            f"{loaded.name} predicts at {logits.shape[1]} places for {tensors[ids].shape[1]} "
            "tokens, so it cannot be told which token is right; give texts"
        )
    if ids == "decoder_input_ids" or _looks_back(loaded, tensors, logits):
        return PredictionTask("next", ids, seed=seed)
    mask = getattr(loaded.tokenizer, "mask_token_id", None)
    if mask is None:
        raise ModelError(
            f"{loaded.name} looks both ways and has no mask token, so it has no loss on a plain "
            "text; give its tokenizer"
        )
    return PredictionTask("masked", ids, int(mask), seed)


def _given(loaded: Loaded, item: Encoded) -> dict[str, Tensor]:
    """Return the tensors of an input on the model's device, without labels."""
    named = {name: value for name, value in item.tensors.items() if name != "labels"}
    return {name: placed(value, loaded.model) for name, value in named.items()}


def _logits(loaded: Loaded, tensors: dict[str, Tensor]) -> Tensor | None:
    with Setting(loaded.model, "eager").held():
        logits: Any = getattr(loaded.model(**tensors), "logits", None)
    return logits if torch.is_tensor(logits) else None


def _looks_back(loaded: Loaded, tensors: dict[str, Tensor], logits: Tensor) -> bool:
    """Tell whether predictions stay when the last token is another one."""
    ids = tensors["input_ids"].clone()
    ids[:, -1] = torch.where(ids[:, -1] == ids[:, 0], ids[:, -1] - 1, ids[:, 0]).clamp(min=0)
    other = _logits(loaded, {**tensors, "input_ids": ids})
    assert other is not None
    if ids.shape[1] < 2:
        raise InputError("the first input has one token; give texts of two tokens or more")
    apart = float((other[:, :-1] - logits[:, :-1]).abs().max())
    return apart <= bound_of(loaded.model.dtype) * float(logits.abs().max())


def prepare(loaded: Loaded, task: PredictionTask, item: Encoded, number: int) -> Group | None:
    """Return one input as it is run, with what is to be predicted; None if that is nothing."""
    tensors = _given(loaded, item)
    if task.kind == "label":  # what counts is known after the plain pass
        nothing = torch.zeros(1, 0, dtype=torch.bool)
        return Group((number,), tensors, nothing, nothing.long())
    ids = tensors[task.ids]
    targets, counted = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
    if task.kind == "next" and "labels" in item.tensors:
        labels = item.tensors["labels"].to(ids.device)
        targets, counted = labels.clamp(min=0), labels >= 0
    elif task.kind == "next":
        real = tensors.get(task.ids.replace("input_ids", "attention_mask"), torch.ones_like(ids))
        targets[:, :-1], counted[:, :-1] = ids[:, 1:], real[:, 1:] > 0
    else:
        targets, counted = ids, _hidden(item, ids, task.seed, number)
        tensors["input_ids"] = ids.masked_fill(counted, task.mask)
    return Group((number,), tensors, counted, targets) if bool(counted.any()) else None


def _hidden(item: Encoded, ids: Tensor, seed: int, number: int) -> Tensor:
    """Return which tokens of a text are hidden, (1, N)."""
    flags = next((tokens.special for tokens in item.streams.values()), [])
    count = ids.shape[1]
    plain = [token for token in range(count) if len(flags) != count or not flags[token]]
    several = max(1, round(MASKED * len(plain)))
    drawn = np.random.default_rng([seed, number]).permutation(plain)[:several]
    hidden = torch.zeros_like(ids, dtype=torch.bool)
    hidden[0, drawn.astype(np.int64).tolist()] = True
    return hidden


def joined(groups: Sequence[Group]) -> Group:
    """Return inputs of one shape as one group."""
    return Group(
        tuple(number for group in groups for number in group.numbers),
        {name: torch.cat([x.tensors[name] for x in groups]) for name in groups[0].tensors},
        torch.cat([group.counted for group in groups]),
        torch.cat([group.targets for group in groups]),
    )


def with_own_answers(group: Group, logits: Tensor) -> Group:
    """Return a group whose right answers are those that the plain model gives."""
    answers = logits.argmax(-1).view(len(group), -1)
    return replace(group, counted=torch.ones_like(answers, dtype=torch.bool), targets=answers)


def losses(logits: Tensor, group: Group, worlds: int = 1) -> Tensor:
    """Return the loss of each input in each world, float64 (W, B).

    logits  (W · B, N, words), or of what counts alone (W · K, words)
    """
    if logits.dim() == 3:
        logits = logits[group.counted.repeat(worlds, 1)]
    fine = torch.promote_types(logits.dtype, torch.float32)
    targets = group.targets[group.counted].repeat(worlds)
    each = F.cross_entropy(logits.to(fine), targets, reduction="none").double()
    owner = group.counted.nonzero()[:, 0]
    sums = each.new_zeros(worlds, len(group)).index_add(1, owner, each.view(worlds, -1))
    return sums / group.counted.sum(1)


@contextmanager
def only_counted(head: nn.Module | None, counted: Tensor, worlds: int) -> Iterator[None]:
    """Let the head that makes logits see only the places that count, inside the block."""
    if head is None:
        yield
        return
    places = counted.repeat(worlds, 1)

    def pick(_head: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return args[0][places], *args[1:]

    hook = head.register_forward_pre_hook(pick)
    try:
        yield
    finally:
        hook.remove()
