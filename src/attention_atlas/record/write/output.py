"""What is kept of a model's outputs? The projection of every layer, the final norm, unembedding.

Found in the trial (`record/prove/outlets.py`) and written once, beside the vectors
(`store/output.py` says what the file holds). Each layer is proven: weights times values, projected
and summed over heads, must be what the projection gave in the trial.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_atlas.models.load import Loaded
from attention_atlas.record.prove.layer_errors import bound_of, relative_error
from attention_atlas.record.prove.linear_map import linear_map, norm_map
from attention_atlas.record.prove.outlets import ROWS, Outlet, Outlets
from attention_atlas.record.prove.receipt import Trial
from attention_atlas.record.prove.residual import added_by
from attention_atlas.record.watch.call import Call, grouped_product
from attention_atlas.record.watch.layers import LayerCalls
from attention_atlas.record.write.options import AUTO, NONE
from attention_atlas.store.files import Array, Numbers

MOST_BYTES = 256 * 10**6  # of projections that are kept without asking
MOST_ROWS = 64 * 10**6  # bytes of an unembedding that is kept whole


@dataclass
class KeptOutput:
    """The tensors of `output.safetensors`, and what the manifest says about them."""

    tensors: dict[str, Numbers] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=lambda: {"layers": {}, "missing": {}})


def kept_bytes_of_output(trial: Trial, asked: str) -> int:
    """Return the bytes of projections that a capture will keep."""
    size = projection_bytes(trial)
    return 0 if asked == NONE or (asked == AUTO and size > MOST_BYTES) else size


def projection_bytes(trial: Trial) -> int:
    """Return how many bytes the projections of all exact layers take, each module once."""
    outlets = trial.outlets
    if outlets is None:
        return 0
    sizes = {}
    for layer in trial.layers:
        outlet = outlets.found.get((layer.first.module, layer.first.visit))
        if outlet is not None:
            call = layer.first
            inner = call.query.shape[1] * call.value.shape[-1]
            sizes[outlet.module] = inner * outlet.gave.shape[-1] * _itemsize(outlets.model)
    return sum(sizes.values())


def _itemsize(model: Any) -> int:
    return 2 if model.dtype == torch.float16 else 4


def keep_projections(trial: Trial, loaded: Loaded, asked: str) -> KeptOutput:
    """Return the projections that are kept of a model, or why there are none.

    asked  "auto": up to 256 MB of projections; "all": any size; "none"
    """
    kept, outlets = KeptOutput(), trial.outlets
    if outlets is None or asked == NONE:
        why = {"outputs": "the model gives its weights alone"}.get(trial.way, "it has edits")
        asked_none = trial.way != "outputs" and asked == NONE
        return _nothing(kept, trial, "projections='none' was asked for" if asked_none else why)
    size = projection_bytes(trial)
    if asked == AUTO and size > MOST_BYTES:
        limit = f"the projections take {size / 1e6:,.0f} MB, more than {MOST_BYTES / 1e6:.0f} MB"
        return _nothing(kept, trial, f"{limit}; capture with projections='all' to keep them")
    bound = bound_of(loaded.model.dtype)
    known: dict[str, str] = {}  # module → the layer under whose name its matrix is kept
    for layer in trial.layers:
        stem = f"{trial.names[layer.tower_key]}.L{layer.number}"
        reason = _add_layer(kept, known, stem, layer, outlets, bound)
        if reason:
            kept.facts["missing"][stem] = reason
    return kept


def add_readout(kept: KeptOutput, trial: Trial, loaded: Loaded, ids: Iterable[int]) -> None:
    """Keep the unembedding of the tokens `ids` too, unless it is known why not."""
    if "no_readout" not in kept.facts:
        _add_readout(kept, trial, loaded.model, sorted(set(ids)))


def _nothing(kept: KeptOutput, trial: Trial, why: str) -> KeptOutput:
    for layer in trial.layers:
        kept.facts["missing"][f"{trial.names[layer.tower_key]}.L{layer.number}"] = why
    kept.facts["no_readout"] = why
    return kept


def _add_layer(
    kept: KeptOutput, known: dict[str, str], stem: str, layer: LayerCalls, outlets: Outlets,
    bound: float,
) -> str:  # fmt: skip
    """Keep the projection of one layer; return why not, or ""."""
    call = layer.first
    outlet = outlets.found.get((call.module, call.visit))
    if outlet is None or len(layer.steps[0]) > 1:
        return "it does not enter one linear module as it is"
    inner = call.query.shape[1] * call.value.shape[-1]
    module = outlets.model.get_submodule(outlet.module)
    try:
        linear = linear_map(module, inner, max(bound, 1e-5))
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as problem:
        return f"{outlet.module} cannot be asked ({type(problem).__name__})"
    if linear is None:
        return f"{outlet.module} is not linear"
    matrix, bias = linear
    error = _sum_error(call, matrix, bias, outlet)
    if not error <= max(bound, 1e-5) * 10:
        return f"the sum of its heads is not what {outlet.module} gives (off by {error:.1e})"
    if outlet.module not in known:
        known[outlet.module] = stem
        kept.tensors[f"{stem}.projection"] = _stored(matrix)
        if bool(bias.any()):
            kept.tensors[f"{stem}.bias"] = _stored(bias)
    kept.facts["layers"][stem] = {
        "module": outlet.module, "tensors": known[outlet.module], "error": error,
    }  # fmt: skip
    return ""


def _sum_error(call: Call, matrix: Tensor, bias: Tensor, outlet: Outlet) -> float:
    """Return how far the sum of all heads, each by itself, is from what the projection gave."""
    weights = call.weights if call.weights is not None else call.softmax(call.logits())
    rows = -(-ROWS // max(1, call.query.shape[2]))  # sequences that hold the first rows
    weights, value = weights[:rows].float(), call.value[:rows].float()
    moved = grouped_product(weights, value).transpose(1, 2).flatten(0, 1)[:ROWS]  # (R, H, E)
    by_head = matrix.float().reshape(moved.shape[1], moved.shape[2], -1)
    total = torch.einsum("rhe,hed->hrd", moved, by_head.to(moved.device)).sum(0) + bias.float()
    gave = outlet.gave[: len(total)].float()
    return relative_error(total.nan_to_num(), gave.nan_to_num())


def _stored(tensor: Tensor) -> Array:
    small = torch.float16 if tensor.dtype == torch.float16 else torch.float32
    return np.asarray(tensor.detach().to("cpu", small).contiguous().numpy())


def _add_readout(kept: KeptOutput, trial: Trial, model: Any, ids: list[int]) -> None:
    """Keep final norm and unembedding, and which layers add to the stream that it reads."""
    outlets = trial.outlets
    assert outlets is not None
    kept.facts["no_readout"] = outlets.no_logits
    read, bound = outlets.read, bound_of(model.dtype)
    if read is None:
        return
    stream = outlets.events[read.event].given
    assert stream is not None
    norm = norm_map(model.get_submodule(read.norm), stream.shape[-1], stream)
    if norm is None:
        kept.facts["no_readout"] = f"{read.norm}, before the unembedding, is no norm that we know"
        return
    added = added_by(outlets, max(bound, 1e-5) * 10)
    layers, tower = _adding(kept, trial, added, model)
    if not layers:
        kept.facts["no_readout"] = (
            "its logits are no sum of what its heads add, since a norm stands after the sum of "
            "every layer (as in BERT); contributions, in the other views, tell what each head "
            "gives its layer"
        )
        return
    rows, numbers = _rows(model.get_submodule(read.unembedding), stream.shape[-1], ids)
    kind, gain, shift = norm
    kept.tensors |= {
        "norm.gain": _stored(gain), "norm.shift": _stored(shift),
        "unembedding": rows, "unembedding.ids": numbers,
    }  # fmt: skip
    del kept.facts["no_readout"]
    kept.facts["readout"] = {
        "tower": tower, "norm": kind, "module": read.norm, "unembedding": read.unembedding,
        "factor": read.factor, "place": read.place, "layers": layers,
        "classes": _classes(model, read.place),
    }  # fmt: skip


def _adding(
    kept: KeptOutput, trial: Trial, added: Mapping[tuple[str, int], str], model: Any
) -> tuple[dict[str, str], str]:
    """Return the layers that add to the final stream, and the tower that they end in."""
    layers, tower = {}, ""
    for layer in trial.layers:
        stem = f"{trial.names[layer.tower_key]}.L{layer.number}"
        module = added.get((layer.first.module, layer.first.visit))
        if module is None or stem not in kept.facts["layers"]:
            continue
        about = kept.facts["layers"][stem]
        if module != about["module"]:
            after = _after(model.get_submodule(module), layer, trial)
            if after is None:
                continue
            about["after"], gain = after
            kept.tensors[f"{stem}.gain"] = _stored(gain)
        layers[stem] = module
        if not layer.tower_key[1]:
            tower = trial.names[layer.tower_key]
    return layers, tower


def _after(module: nn.Module, layer: LayerCalls, trial: Trial) -> tuple[str, Tensor] | None:
    """Return the kind and the gain of a module after a projection: a norm, or a scale."""
    assert trial.outlets is not None
    gave = trial.outlets.found[layer.first.module, layer.first.visit].gave
    norm = norm_map(module, gave.shape[-1], gave)
    if norm is not None:
        kind, gain, shift = norm
        return (kind, gain) if not bool((shift.abs() > 1e-6).any()) else None
    with torch.no_grad():
        ones = module(torch.ones_like(gave[:1]))[0]
        linear = torch.allclose(module(gave), gave * ones, atol=1e-6, rtol=1e-4)
    return ("scale", ones.float()) if linear else None


def _rows(module: nn.Module, width: int, ids: list[int]) -> tuple[Array, Array]:
    """Return the rows of an unembedding, all of them or those of some tokens, and their numbers."""
    weight: Any = module.weight
    rows = weight if weight.shape[-1] == width else weight.T
    if rows.numel() * 4 <= MOST_ROWS:
        numbers = np.arange(len(rows))
    else:
        numbers = np.array([number for number in ids if 0 <= number < len(rows)], np.int64)
    return _stored(rows[torch.from_numpy(numbers).to(rows.device)]), numbers.astype(np.int64)


def _classes(model: Any, place: str) -> list[str] | None:
    if place == "each":
        return None
    names = getattr(model.config, "id2label", None) or {}
    return [str(names[number]) for number in sorted(names)]
