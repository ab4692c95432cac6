"""How far is one layer, as we recompute it, from what the model computed?"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attention_atlas.record.watch.call import Call, spread
from attention_atlas.record.watch.layers import LayerCalls
from attention_atlas.record.watch.pieces import Piece
from attention_atlas.store import softmax
from attention_atlas.store.manifest import LayerReceipt

BOUND = 1e-5
HALVES = (torch.float16, torch.bfloat16)
STORED_BOUND = 1e-3
Weights = npt.NDArray[np.float32]


@dataclass
class Finding:
    """What the trial found out about one layer."""

    weights_error: float = 0.0
    output_error: float = 0.0
    stored_error: float = 0.0
    causal: bool = True
    unknown: set[str] = field(default_factory=set)
    in_odd_parts: bool = False

    def add(self, parts: list[Piece], layer: LayerCalls) -> None:
        """Compare the pieces of one input with the model's own weights or output."""
        call = layer.first
        for part in parts:
            actual = own_weights(part)
            self.causal &= _looks_back(actual)
            if not part.query.shape[-1]:  # weights only: they are the model's own
                self.weights_error = worst(self.weights_error, 0.0 if sane(actual) else math.nan)
                continue
            exact, rounded = (_recomputed(part, call, half) for half in (False, True))
            if part.weights is None:  # fused attention gives no weights, so compare the output
                error = _moved_error(part, exact)
                self.weights_error = worst(self.weights_error, error)
                self.stored_error = worst(self.stored_error, _difference(rounded, exact))
            else:
                like_model = (
                    _recomputed_in_half(part, call) if part.query.dtype in HALVES else exact
                )
                self.weights_error = worst(self.weights_error, _difference(like_model, actual))
                self.stored_error = worst(self.stored_error, _difference(rounded, actual))

    def receipt(self, tower: str, number: int, bound: float) -> LayerReceipt:
        stored = self.stored_error
        if bound == BOUND and not stored <= STORED_BOUND:  # this layer will be stored in float32
            stored = self.weights_error
        reason = self._reason(bound)
        return LayerReceipt(
            tower, number, self.weights_error, self.output_error, stored, not reason, reason
        )

    def _reason(self, bound: float) -> str:
        if self.unknown:
            names = ", ".join(sorted(self.unknown))
            return f"the model passes unknown arguments to attention: {names}"
        if self.in_odd_parts:
            return "it runs in parts that together are not the text"
        if not self.weights_error <= bound:
            return f"recomputed weights are off by {self.weights_error:.1e}"
        if not self.output_error <= bound:
            return f"its output differs from a plain run by {self.output_error:.1e}"
        return ""


def bound_of(dtype: torch.dtype) -> float:
    """Return how large an error of exact weights may be: 1e-5, or four steps of half precision.

    In half precision the model rounds its logits before the softmax, so its weights are compared
    with the same formula in the same precision. The difference between the float32 weights of the
    atlas and the model's is then the model's own rounding; the receipt has it as the stored error.

    1e-5 is a promise, not a bound of rounding. Two float32 runs agree to about eps · L where L is
    the largest logit: a layer whose logits pass 84 may keep 1e-5 on one machine and miss it on
    another. It is then called not exact, and the receipt has its error.
    """
    return 4 * float(torch.finfo(dtype).eps) if dtype in HALVES else BOUND


def worst(a: float, b: float) -> float:
    """Return the larger error; NaN is the largest."""
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


def own_weights(part: Piece) -> Weights:
    """Return the model's own weights (H, n, m); if it gave none, 1 where a key may be seen."""
    if part.weights is not None:
        return np.asarray(part.weights.float().cpu().numpy())
    return np.where(part.form.visible(part.query.shape[1], part.key.shape[1]), 1, 0).astype("f4")


def _recomputed(part: Piece, call: Call, half: bool) -> Weights:
    def stored(x: Tensor) -> Weights:
        return np.asarray((x.half() if half else x).float().cpu().numpy())

    return softmax.weights(
        stored(part.query),
        stored(part.key),
        scale=call.scale,
        softcap=call.softcap,
        sink=None if call.sink is None else call.sink.float().cpu().numpy(),
        form=part.form,
    )


def _recomputed_in_half(part: Piece, call: Call) -> Weights:
    """Return the weights (H, n, m) in the model's precision, by the steps of eager attention."""
    heads, n, m = part.query.shape[0], part.query.shape[1], part.key.shape[1]
    keys = spread(part.key[None], heads)[0]
    logits = (part.query @ keys.transpose(-1, -2)) * call.scale
    if call.softcap is not None:
        logits = torch.tanh(logits / call.softcap) * call.softcap
    bias = part.form.added(n, m)
    if bias is not None:
        logits = (logits.float() + torch.from_numpy(bias).to(logits.device)).to(logits.dtype)
    hidden = torch.from_numpy(~part.form.visible(n, m)).to(logits.device)
    logits = logits.masked_fill(hidden, torch.finfo(logits.dtype).min)
    if call.sink is not None:
        sink = call.sink.reshape(-1, 1, 1).expand(heads, n, 1).to(logits.dtype)
        logits = torch.cat([logits, sink], -1)
    weights = torch.softmax(logits, -1, dtype=torch.float32).to(logits.dtype)[..., :m]
    return np.asarray(weights.float().cpu().numpy())


def _difference(a: Weights, b: Weights) -> float:
    if a.shape != b.shape:
        return math.inf
    if not a.size:
        return 0.0
    return float(np.abs(a.astype(np.float64) - b).max())


def _moved_error(part: Piece, weights: Weights) -> float:
    assert part.output is not None
    value = spread(part.value[None], len(weights))[0].float().cpu()
    moved = torch.from_numpy(weights) @ value
    return relative_error(moved, part.output.float().cpu())


def relative_error(a: Tensor, b: Tensor) -> float:
    """Return the largest difference, relative to the largest number of `b`."""
    if a.shape != b.shape:
        return math.inf
    size = max(1e-6, float(b.abs().max())) if b.numel() else 1.0
    return float((a.float() - b.float()).abs().max() / size) if b.numel() else 0.0


def _looks_back(weights: Weights) -> bool:
    n, m = weights.shape[-2:]
    return n == m and not np.triu(np.abs(weights), 1).any()


def sane(weights: Weights) -> bool:
    """Tell whether weights can come from a softmax: finite, not negative, sums at most one."""
    return bool(
        np.isfinite(weights).all() and (weights >= 0).all() and weights.sum(-1).max() < 1.001
    )
