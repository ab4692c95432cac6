"""How do several inputs go through the model at once?

Sequences are padded on the right, whatever the tokenizer prefers: most models count positions from
the left edge, so pads on the left would move every real token and change its vectors. Pads are
masked, and the masks that come back say which places are real.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import Encoded

_IGNORED_LABEL = -100


def collate(
    items: Sequence[Encoded], loaded: Loaded
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Join inputs to tensors for `model(**tensors)`; also returns which (B, N) places are real.

    The real places of a stream are as many as its `Tokens`, in the same order. Raises ValueError
    where the items cannot be padded together; they have to run one at a time then.
    """
    names = set(items[0].tensors)
    if any(set(item.tensors) != names for item in items):
        raise ValueError("inputs of different kinds cannot share a batch")
    tensors = {name: _join(name, items, loaded) for name in items[0].tensors}
    real = {stream: _real(stream, tensors, items) for stream in items[0].streams}
    return {name: placed(value, loaded.model) for name, value in tensors.items()}, real


def placed(value: torch.Tensor, model: Any) -> torch.Tensor:
    """Move tensors to the model's device, and real numbers to its precision."""
    dtype = model.dtype if value.is_floating_point() else value.dtype
    return value.to(model.device, dtype)


def _join(name: str, items: Sequence[Encoded], loaded: Loaded) -> torch.Tensor:
    values = [item.tensors[name] for item in items]
    if len(values) == 1:
        return values[0]
    if any(value.ndim == 0 or len(value) != 1 for value in values):
        raise ValueError(f"{name} has no batch axis, so inputs cannot share a batch")
    if len({value.shape for value in values}) == 1:
        return torch.cat(values)
    if not all(_is_sequence(name, item) for item in items):
        raise ValueError(f"{name} differs in size, so inputs cannot share a batch")
    n = max(value.shape[1] for value in values)
    fill = _fill(name, loaded)
    return torch.cat([_padded(value, n, fill) for value in values])


def _side(name: str) -> str:
    return "decoder_" if name.startswith("decoder") else ""


def _is_sequence(name: str, item: Encoded) -> bool:
    """Tell whether the tensor has one entry per token and a mask says which are pads."""
    side, tensors = _side(name), item.tensors
    tokens = tensors.get(f"{side}input_ids", tensors.get(f"{side}inputs_embeds"))
    if tokens is None or f"{side}attention_mask" not in tensors:
        return False
    return tensors[name].shape[:2] == tokens.shape[:2]


def _padded(value: torch.Tensor, n: int, fill: int) -> torch.Tensor:
    missing = n - value.shape[1]
    return pad(value, (0, 0) * (value.ndim - 2) + (0, missing), value=fill)


def _fill(name: str, loaded: Loaded) -> int:
    """Choose what fills pads: the tokenizer's own pad for ids, else any token: pads are masked."""
    if name == "labels":
        return _IGNORED_LABEL
    if not name.endswith("input_ids"):
        return 0
    candidates = (
        getattr(loaded.tokenizer, "pad_token_id", None),
        getattr(loaded.model.config, "pad_token_id", None),
        getattr(loaded.tokenizer, "eos_token_id", None),
    )
    return next((i for i in candidates if isinstance(i, int) and i >= 0), 0)


def _real(stream: str, tensors: dict[str, torch.Tensor], items: Sequence[Encoded]) -> torch.Tensor:
    mask = tensors.get(f"{_side(stream)}attention_mask")
    if mask is not None and mask.ndim == 2:
        return mask.bool()
    lengths = torch.tensor([len(item.streams[stream]) for item in items])
    return torch.arange(int(lengths.max()))[None] < lengths[:, None]
