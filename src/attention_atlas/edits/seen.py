"""Which keys does each query of a call see, as the model's own mask says?"""

import torch
from torch import Tensor

from attention_atlas.record.watch.door import Passing
from attention_atlas.record.watch.recorder import is_causal
from attention_atlas.store.form import FAR_BELOW


def seen_keys(passing: Passing) -> Tensor:
    """Return which keys are seen, bool (B, H, N, M); it may be a view of fewer numbers."""
    (batch, heads, queries, _), keys = passing.query.shape, passing.key.shape[2]
    whole = batch, heads, queries, keys
    if passing.mask is None:
        seen = torch.ones(queries, keys, dtype=torch.bool, device=passing.query.device)
        return (seen.tril() if passing.fused and is_causal(passing) else seen).expand(whole)
    mask = passing.mask[..., :keys]
    if mask.dtype != torch.bool:
        best = mask.amax(-1, keepdim=True)
        mask = (mask > best - FAR_BELOW) & (best > -FAR_BELOW)
    return mask.expand(whole)


def mask_of(seen: Tensor, passing: Passing) -> Tensor:
    """Return a mask by which a call sees these keys alone, in the manner of its own mask."""
    own = passing.mask
    if own is None and passing.fused:
        return seen
    if own is not None and own.dtype == torch.bool:
        return own[..., : seen.shape[-1]] & seen
    if own is None:
        own = torch.zeros((), dtype=passing.query.dtype, device=seen.device)
    else:
        own = own[..., : seen.shape[-1]]
    return own.expand(seen.shape).masked_fill(~seen, torch.finfo(own.dtype).min)
