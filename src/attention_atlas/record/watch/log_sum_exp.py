"""What is the log-sum-exp of each row of an attention call?

Every fused kernel of torch computes it beside its output; `scaled_dot_product_attention` drops it.
A dispatch mode sees which kernel torch chose, and with which arguments, so nothing is run twice and
the output has the same bits. Where there are weights instead, it follows from the largest weight of
a row and its logit, since weight = exp(logit − log-sum-exp).
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attention_atlas.record.watch.call import Call

_ATEN = torch.ops.aten
# Kernels whose second result is the log-sum-exp of each row, natural logarithm, (B, H, N, …).
_KERNELS = {
    _ATEN._scaled_dot_product_flash_attention_for_cpu.default,
    _ATEN._scaled_dot_product_flash_attention.default,
    _ATEN._scaled_dot_product_efficient_attention.default,
    _ATEN._scaled_dot_product_cudnn_attention.default,
    _ATEN._scaled_dot_product_fused_attention_overrideable.default,
}
_ON_REQUEST = {  # of these, the ones that leave it out unless argument 4 asks for it
    _ATEN._scaled_dot_product_efficient_attention.default,
    _ATEN._scaled_dot_product_cudnn_attention.default,
}
_COMPOSED = {  # calls of other operations; seen whole in inference mode alone
    _ATEN.scaled_dot_product_attention.default,
    _ATEN._scaled_dot_product_attention_math.default,
    _ATEN.softmax.int,
}
_LOWEST = torch.finfo(torch.float16).min / 2  # a row below it sees no key
_SOFTMAXES = {_ATEN._softmax.default, _ATEN._safe_softmax.default}


class WatchedKernel(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context in which one fused attention runs; afterwards `lse` is its log-sum-exp, or None."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lse: Tensor | None = None

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Tell torch not to wrap each operation for its compiler, which takes longer than ours."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        kwargs = kwargs or {}
        if func in _KERNELS:
            if func in _ON_REQUEST:
                args = (*args[:4], True, *args[5:])
            results = func(*args, **kwargs)
            self.lse = results[1]
            return results
        if func in _COMPOSED:
            with self:
                return func.decompose(*args, **kwargs)
        output = func(*args, **kwargs)
        if func in _SOFTMAXES:  # attention in single steps, where no kernel can be used
            self.lse = args[0].amax(-1).float() - output.amax(-1).float().log()
        return output

    def rows(self, query: Tensor) -> Tensor | None:
        """Return the log-sum-exp (B, H, N) of the rows of `query`; None if it is not known."""
        lse, shape = self.lse, query.shape[:3]
        if lse is None or lse.dim() < 3:
            return None
        lse = lse.reshape(*lse.shape[:2], -1)[..., : shape[2]]  # some kernels pad the rows
        return lse.float() if lse.shape == shape else None


def from_weights(call: Call, weights: Tensor) -> Tensor:
    """Return the log-sum-exp (B, H, N) of a call whose weights (B, H, N, M) are known."""
    largest, place = weights.max(-1)  # (B, H, N)
    batch, heads, _ = place.shape
    device = place.device
    inputs = torch.arange(batch, device=device).clamp_max(len(call.key) - 1)[:, None, None]
    groups = torch.arange(heads, device=device) // (heads // call.key.shape[1])
    key = call.key[inputs, groups[:, None], place]  # (B, H, N, D)
    logit = (call.query.float() * key.float()).sum(-1) * call.scale
    if call.softcap is not None:
        logit = call.softcap * torch.tanh(logit / call.softcap)
    for term in (call.bias, call.mask):
        if term is not None and term.dtype != torch.bool:
            wide = term.expand(*place.shape, term.shape[-1])
            logit = logit + wide.gather(-1, place[..., None])[..., 0].float()
    return logit - largest.float().log()


def with_unseen_rows(lse: Tensor, keys: int) -> Tensor:
    """Return the log-sum-exp (H, n) with log(keys) for rows that see no key.

    Such a row has equal weights for all keys, as if its logits were zero. The model's own number is
    about the lowest of its type (−65,504 or less), infinite or NaN.
    """
    seen = (lse > _LOWEST) & ~lse.isinf()
    return lse.where(seen, math.log(keys) if keys else 0.0)


def all_rows_seen(several: Sequence[Tensor]) -> list[bool]:
    """Tell of each of some log-sum-exps whether `with_unseen_rows` would change nothing."""
    ends = [torch.stack(torch.aminmax(lse)) for lse in several if lse.numel()]
    # Read at once: before a GPU tells anything, it finishes what it has to do.
    known = torch.stack([end.to(ends[0].device) for end in ends]).tolist() if ends else []
    bounds = iter(known)  # NaN if a number is
    return [not lse.numel() or _in_bounds(*next(bounds)) for lse in several]


def _in_bounds(low: float, high: float) -> bool:
    return low > _LOWEST and high < math.inf
