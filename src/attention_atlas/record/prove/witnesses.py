"""Did we change what the model does, or miss some of its attention?

The watched run is compared with a plain run. Two witnesses, the tracer and the maps that the model
itself returns, show attention that we did not see.
"""

import math
from typing import Any

import torch
from torch import Tensor

from attention_atlas.record.prove.layer_errors import bound_of, relative_error, sane, worst
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.module_outputs import module_outputs
from attention_atlas.record.watch.plain import Plain, plain_outputs
from attention_atlas.record.watch.ways import observe


def output_errors(
    model: Any, tensors: dict[str, Tensor], plain: Plain, way: str, fast: bool, seed: int
) -> dict[str, float]:
    """Return, by module, the error of its output in the watched run against a plain run.

    `plain` is a run of eager attention with witnesses. If it differs, a run without them, and with
    the fused attention of a fast capture, decides.
    """
    modules = set(plain.outputs)
    with module_outputs(model, modules) as watched:
        observe(model, tensors, way, fast=fast, seed=seed)
    errors = output_differences(plain.outputs, watched)
    if all(error <= bound_of(model.dtype) for error in errors.values()):
        return errors
    name = "sdpa" if fast else "eager"
    return output_differences(plain_outputs(model, tensors, modules, seed, name), watched)


def output_differences(
    plain: dict[str, list[Tensor]], watched: dict[str, list[Tensor]]
) -> dict[str, float]:
    """Return, by module, the largest difference of its outputs in two runs, relative to them."""
    return {name: _output_error(plain[name], watched[name]) for name in plain}


def _output_error(plain: list[Tensor], watched: list[Tensor]) -> float:
    if len(plain) != len(watched):
        return math.inf
    error = 0.0
    for a, b in zip(plain, watched, strict=True):
        error = worst(error, relative_error(b.nan_to_num(), a.nan_to_num()))
    return error


def unseen(model: Any, plain: Plain, calls: list[Call], way: str) -> set[str]:
    """Return the modules whose attention the two witnesses show and we did not record."""
    seen = {call.module for call in calls}
    traced, returned = plain.traced, plain.returned
    missing: set[str] = set()
    if way != "trace":
        missing |= {call.module for call in traced if call.place and call.module not in seen}
    bound = bound_of(model.dtype)
    recorded = [_rows(call.weights) for call in calls if call.weights is not None]
    recorded += [
        _rows(call.weights.mean(1, keepdim=True).expand_as(call.weights))
        for call in calls
        if call.weights is not None and returned and _means_heads(returned[0], call)
    ]
    if recorded:
        missing |= {
            f"the model's own {call.module}"
            for call in returned
            if _is_attention(call) and not _among(_rows(call.weights), recorded, 10 * bound)
        }
    return missing


def _is_attention(returned: Call) -> bool:
    """Tell whether a returned map holds weights; some models return logits, which prove nothing."""
    assert returned.weights is not None
    return sane(returned.weights.float().cpu().numpy())


def _means_heads(returned: Call, call: Call) -> bool:
    """Tell whether a model returns the mean over heads in place of each head."""
    weights = returned.weights
    assert weights is not None
    return weights.shape[1] > 1 and bool((weights[:, :1] == weights[:, 1:2]).all())


def _rows(weights: Tensor | None) -> Tensor:
    """Return each row as one number, sorted: two maps with the same rows have the same numbers.

    The number is the product with a fixed random vector, so rows can be compared whatever the
    order of heads, windows and batch.
    """
    assert weights is not None
    dice = torch.Generator().manual_seed(weights.shape[-1])
    vector = torch.randn(weights.shape[-1], generator=dice).to(weights.device)
    return (weights.float() @ vector).flatten().sort().values


def _among(rows: Tensor, recorded: list[Tensor], bound: float) -> bool:
    return any(
        other.shape == rows.shape and bool((other - rows).abs().max() <= bound)
        for other in recorded
    )
