"""What is recorded of each attention call that passes through the door?"""

from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from attention_atlas.record.watch.call import Call, Light
from attention_atlas.record.watch.door import Passing
from attention_atlas.record.watch.log_sum_exp import from_weights
from attention_atlas.record.watch.set_weights import with_weights

# Arguments that change nothing about the weights beyond what mask, scale, soft cap, bias and sink
# already say: windows and causality are in the mask, the rest steers caches and kernels.
_HARMLESS = frozenset(
    [
        "is_causal",
        "sliding_window",
        "position_ids",
        "cache_position",
        "use_cache",
        "output_attentions",
        "cache",
        "output_hidden_states",
        "return_dict",
        "past_key_values",
        "past_key_value",
        "layer_idx",
        "deterministic",
        "cu_seq_lens_q",
        "cu_seq_lens_k",
        "max_length_q",
        "max_length_k",
        "cu_seqlens",
        "max_seqlen",
        "output_router_logits",
        "position_embeddings",
        "attention_mask",
        "head_mask",
    ]
)
# Bytes of calls that wait on a CPU to be reduced one after the other. Each by itself takes twice as
# long: while a model computes a layer, the processor forgets our code.
TOGETHER = 16_000_000
SHARE_OF_GPU = 1 / 64  # of its memory, for calls that wait: those of several layers are one there
_KNOWN = _HARMLESS | {"softcap", "position_bias", "s_aux", "scaling", "dropout"}


class Recorder:
    """A hook that records each attention call as a Call.

    detail  keep the model's own weights; else the log-sum-exp of each row, where it is known
    light   a function that reduces calls to what is kept; None keeps all of it
    """

    def __init__(self, *, detail: bool = False, light: Light | None = None):
        self.needs_weights, self.light = detail, light
        self.forget()

    def forget(self) -> None:
        """Forget the calls so far, such as those of a failed batch."""
        self.calls: list[Call] = []
        self._waiting: list[Call] = []

    def take(self) -> list[Call]:
        """Return the calls so far and forget them."""
        self._reduce()
        calls = self.calls
        self.forget()
        return calls

    def before(self, passing: Passing) -> None:
        """Do nothing: a call is recorded once it is final."""

    def after(self, passing: Passing) -> None:
        """Record the call."""
        self._waiting.append(self._call(passing))
        if self.light is None:
            return
        if sum(map(_bytes, self._waiting)) > _most_waiting(passing.query.device):
            self._reduce()

    def _reduce(self) -> None:
        """Reduce the calls that wait, in their order."""
        self.calls += self._waiting if self.light is None else self.light(self._waiting)
        self._waiting = []

    def _call(self, passing: Passing) -> Call:
        options = passing.options
        sink = _detached(options.get("s_aux", getattr(passing.module, "sinks", None)))
        scaling = options.get("scaling")
        call = Call(
            **vars(passing.site),
            **vars(passing.surroundings),
            query=passing.query.detach(),
            key=passing.key.detach(),
            value=passing.value.detach(),
            scale=float(passing.query.shape[-1] ** -0.5 if scaling is None else scaling),
            mask=_detached(passing.mask),
            causal=passing.fused and passing.mask is None and is_causal(passing),
            bias=_detached(options.get("position_bias")),
            softcap=options.get("softcap"),
            sink=None if sink is None else sink.reshape(-1),
            weights=_detached(passing.weights) if self.needs_weights else None,
            output=_detached(passing.output),
            lse=_detached(passing.lse),
            unknown=tuple(sorted(name for name in options if _is_unknown(name, options[name]))),
        )
        if passing.own_weights is not None and passing.weights is not None:
            call = with_weights(call, passing.own_weights.detach(), passing.weights.detach())
        if self.needs_weights or passing.weights is None:
            return call
        return replace(call, lse=from_weights(call, passing.weights.detach()))


def _bytes(call: Call) -> int:
    tensors = call.query, call.key, call.value, call.output
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


@cache
def _most_waiting(device: torch.device) -> int:
    """Return how many bytes of calls may wait on a device."""
    if device.type != "cuda":
        return TOGETHER
    return int(torch.cuda.get_device_properties(device).total_memory * SHARE_OF_GPU)


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()


def _is_unknown(name: str, value: Any) -> bool:
    return value is not None and name not in _KNOWN


def is_causal(passing: Passing) -> bool:
    """Tell whether torch's fused attention, as transformers calls it, is causal without a mask."""
    declared = passing.options.get("is_causal")
    declared = getattr(passing.module, "is_causal", True) if declared is None else declared
    return bool(declared) and passing.query.shape[2] > 1
