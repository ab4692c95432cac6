"""How is a call recorded whose weights were set by a hook, not by the softmax?

Its weights are not those of its queries and keys. So a bias is added to the logits, found by
subtraction, that makes them so: softmax(logits + bias) are the weights that were set. Queries and
keys stay the model's own, and the call can be stored and read as any other.
"""

from dataclasses import replace

import torch
from torch import Tensor

from attention_atlas.record.watch.call import Call

# A sink takes part in the softmax. So far below a row's logits it takes nothing, in float32.
_BELOW = 30.0


def with_weights(call: Call, own: Tensor, new: Tensor) -> Call:
    """Return a call whose bias explains its new weights, (B, H, N, M); `own` are the model's."""
    bare = replace(call, mask=None, bias=None, causal=False)
    logits = bare.logits()
    bias = new.float().log() - logits
    if call.sink is not None:
        bias = bias + (call.sink.float().reshape(1, -1, 1, 1) + _BELOW).clamp_min(0)
    changed = (new != own).any(-1, keepdim=True)  # (B, H, N, 1)
    return replace(bare, bias=torch.where(changed, bias, _added(call)))


def _added(call: Call) -> Tensor:
    """Return what the call itself adds to its logits, (B, H, N, M); −inf at hidden keys."""
    (batch, heads, queries, _), keys = call.query.shape, call.key.shape[2]
    added = call.query.new_zeros(1, 1, 1, 1, dtype=torch.float32)
    if call.bias is not None:
        added = added + call.bias[..., :keys].float()
    if call.mask is not None:
        mask = call.mask[..., :keys]
        if mask.dtype == torch.bool:
            added = torch.where(mask, added, -torch.inf)
        else:
            added = added + mask.float()
    return added.expand(batch, heads, queries, keys)
