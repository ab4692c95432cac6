"""Is what we recompute what the model computed?

Before a capture a few inputs are run plainly and watched in each way in turn. For every layer the
weights recomputed by the reader's own NumPy are compared with the weights the model itself used,
and the layer's output with that of the plain run. The first way that is exact everywhere is taken.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attention_atlas.errors import ModelError
from attention_atlas.models.encode import Encoded, collate
from attention_atlas.models.load import Loaded
from attention_atlas.record.call import Call, spread
from attention_atlas.record.interface import implementation, runs_fused
from attention_atlas.record.layers import (
    Group,
    LayerCalls,
    layers_of,
    modality,
    name_towers,
)
from attention_atlas.record.observe import (
    WAYS,
    module_outputs,
    observe,
    plain_outputs,
    witnesses,
)
from attention_atlas.record.pieces import CannotSplit, Forms, Piece, Places, pieces, places
from attention_atlas.record.streams import Ends, ends_of
from attention_atlas.store import softmax
from attention_atlas.store.manifest import LayerReceipt, Receipt

BOUND = 1e-5
HALVES = (torch.float16, torch.bfloat16)
STORED_BOUND = 1e-3
Weights = npt.NDArray[np.float32]


@dataclass
class Plan:
    """How this model is captured: what the probe settled."""

    way: str
    fast: bool
    alone: bool  # inputs run one at a time
    names: dict[Group, str]
    causal: set[Group]
    ends: dict[tuple[Group, int], Ends]
    layers: list[LayerCalls]
    receipt: Receipt
    own: list[dict[tuple[str, int], Weights]] = field(default_factory=list)  # per probed input


@dataclass
class Probe:
    """A few inputs as batches for the model."""

    batches: list[tuple[dict[str, Tensor], dict[str, Tensor]]]
    alone: bool


def probe(loaded: Loaded, items: list[Encoded], seed: int = 0) -> Plan:
    """Try each way on a few inputs; the first exact one, else the best with its faults named."""
    plans: list[Plan] = []
    problems: list[str] = []
    for way in WAYS:
        try:
            plan = _try(loaded, items, way, seed)
        except Exception as problem:  # models fail in every possible way; the next way may do
            problems.append(f"{way}: {type(problem).__name__}: {problem}")
            continue
        if plan is None:
            problems.append(f"{way}: no attention seen")
            continue
        if plan.receipt.exact:
            return plan
        plans.append(plan)
    if not plans:
        raise ModelError(
            f"no attention could be captured from {type(loaded.model).__name__} "
            f"({'; '.join(problems)})"
        )
    return max(
        plans, key=lambda p: (sum(one.exact for one in p.receipt.layers), -WAYS.index(p.way))
    )


def _try(loaded: Loaded, items: list[Encoded], way: str, seed: int) -> Plan | None:
    """As a batch if that is exact; else one by one, for some models do look at padding."""
    together = _together(loaded, items)
    if together is not None:
        try:
            plan = _compare(loaded, together, way, seed)
            if plan is None or plan.receipt.exact:
                return plan
        except CannotSplit:
            pass
    return _compare(loaded, _one_by_one(loaded, items), way, seed)


def _together(loaded: Loaded, items: list[Encoded]) -> Probe | None:
    if len(items) == 1:
        return None
    try:
        return Probe([collate(items, loaded)], alone=False)
    except ValueError:
        return None


def _one_by_one(loaded: Loaded, items: list[Encoded]) -> Probe:
    return Probe([collate([item], loaded) for item in items], alone=len(items) > 1)


def _compare(loaded: Loaded, probe: Probe, way: str, seed: int) -> Plan | None:
    model = loaded.model
    fast = way == "named" and runs_fused(model)
    found: list[LayerCalls] = []
    names: dict[Group, str] = {}
    ends: dict[tuple[Group, int], Ends] = {}
    causal: set[Group] = set()
    findings: dict[tuple[Group, int], Finding] = {}
    own: list[dict[tuple[str, int], Weights]] = []
    missing: set[str] = set()
    for tensors, real in probe.batches:
        calls = observe(model, tensors, way, detail=True, seed=seed)
        layers = layers_of(calls)
        if not layers:
            return None
        forms = Forms()
        batch = len(next(iter(tensors.values())))
        if not found:
            found = layers
            names = name_towers(model, layers, set())
            ends = ends_of(model, layers, names, real, batch)
        refuse_hidden_pads(model, layers, ends, real)
        own += [{} for _ in range(batch)]
        outputs = _output_errors(model, tensors, layers, way, fast, seed)
        for layer in layers:
            mine = findings.setdefault((layer.group, layer.number), Finding())
            mine.output_error = max(mine.output_error, outputs.get(layer.first.module, 0.0))
            mine.in_odd_parts |= in_odd_parts(model, layer, ends[layer.group, layer.number], real)
            mine.unknown |= {name for calls in layer.steps for c in calls for name in c.unknown}
            for row in range(batch):
                q, k = real_ends(ends[layer.group, layer.number], real, row)
                parts = pieces(layer, row, batch, q, k, forms)
                mine.add(parts, layer)
                if all(part.weights is not None for part in parts):
                    key = (names[layer.group], layer.number)
                    own[row - batch][key] = _block_diagonal([_own(part) for part in parts])
        if way != "outputs":
            missing |= _unseen(model, tensors, calls, way, seed)
    causal = {
        group
        for group in names
        if all(f.causal for (g, _), f in findings.items() if g == group) and not group[1]
    }
    names = _renamed(model, found, causal, names, own)
    receipt = Receipt(
        how=way,
        dtype=str(model.dtype).removeprefix("torch."),
        bound=bound_of(model.dtype),
        layers=tuple(
            finding.receipt(names[group], number, bound_of(model.dtype))
            for (group, number), finding in findings.items()
        ),
        missing=tuple(sorted(missing)),
    )
    return Plan(way, fast, probe.alone, names, causal, ends, found, receipt, own)


def _renamed(
    model: Any,
    layers: list[LayerCalls],
    causal: set[Group],
    before: dict[Group, str],
    own: list[dict[tuple[str, int], Weights]],
) -> dict[Group, str]:
    """Names again, now that it is known which towers are causal."""
    after = name_towers(model, layers, causal)
    new = {before[group]: after[group] for group in before}
    for weights in own:
        moved = {(new[tower], number): value for (tower, number), value in weights.items()}
        weights.clear()
        weights.update(moved)
    return after


def real_ends(ends: Ends, real: dict[str, Tensor], row: int) -> tuple[Places, Places]:
    """Which places of an input's queries and keys are not padding."""

    def side(stream: str) -> Places:
        return slice(None) if stream not in real else places(real[stream][row])

    return side(ends.queries), side(ends.keys)


def refuse_hidden_pads(
    model: Any,
    layers: list[LayerCalls],
    ends: dict[tuple[Group, int], Ends],
    real: dict[str, Tensor],
) -> None:
    """Text that a model pools or joins with pictures has places we cannot tell from padding.

    Without padding there is no question, so such inputs run one at a time.
    """
    if all(bool(mask.all()) for mask in real.values()):
        return
    for layer in layers:
        mine = ends[layer.group, layer.number]
        known = mine.queries in real and mine.keys in real
        if not known and modality(model, layer.group[0]) == "text":
            raise CannotSplit


def in_odd_parts(model: Any, layer: LayerCalls, ends: Ends, real: dict[str, Tensor]) -> bool:
    """Whether a text runs in several softmaxes that are not runs of its tokens.

    Windows of a picture are parts that add up; landmarks, hashes and gathered blocks are not.
    """
    calls = layer.steps[0]
    several = len(calls) > 1 or len(calls[0].query) > len(next(iter(real.values()), calls[0].query))
    return several and ends.queries not in real and modality(model, layer.group[0]) == "text"


@dataclass
class Finding:
    """What the probe learned of one layer."""

    weights_error: float = 0.0
    output_error: float = 0.0
    stored_error: float = 0.0
    causal: bool = True
    unknown: set[str] = field(default_factory=set)
    in_odd_parts: bool = False

    def add(self, parts: list[Piece], layer: LayerCalls) -> None:
        call = layer.first
        for part in parts:
            own = _own(part)
            self.causal &= _looks_back(own)
            if not part.query.shape[-1]:  # weights only: they are the model's own
                self.weights_error = worst(self.weights_error, 0.0 if _sane(own) else math.nan)
                continue
            exact, rounded = (_recomputed(part, call, half) for half in (False, True))
            if part.weights is None:  # fused attention shows no weights, so compare what they move
                error = _moved_error(part, exact)
                self.weights_error = worst(self.weights_error, error)
                self.stored_error = worst(self.stored_error, _difference(rounded, exact))
            else:
                like = _recomputed_in_half(part, call) if part.query.dtype in HALVES else exact
                self.weights_error = worst(self.weights_error, _difference(like, own))
                self.stored_error = worst(self.stored_error, _difference(rounded, own))

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
            return "it runs in parts that do not add up to the text"
        if not self.weights_error <= bound:
            return f"recomputed weights are off by {self.weights_error:.1e}"
        if not self.output_error <= bound:
            return f"its output differs from a plain run by {self.output_error:.1e}"
        return ""


def bound_of(dtype: torch.dtype) -> float:
    """How far weights may be off and still count as exact: 1e-5, or four steps of half precision.

    In half precision the model rounds its logits before the softmax, so its weights are compared
    with the same formula in the same precision. How far the float32 weights of the atlas are from
    the model's is then the model's own rounding, and stands in the receipt as the stored error.
    """
    return 4 * float(torch.finfo(dtype).eps) if dtype in HALVES else BOUND


def worst(a: float, b: float) -> float:
    """The larger error; NaN is the largest."""
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


def _own(part: Piece) -> Weights:
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
    """The formula in the model's own precision, step by step as eager attention has it."""
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
    if a.shape != b.shape:
        return math.inf
    size = max(1e-6, float(b.abs().max())) if b.numel() else 1.0
    return float((a.float() - b.float()).abs().max() / size) if b.numel() else 0.0


def _looks_back(weights: Weights) -> bool:
    n, m = weights.shape[-2:]
    return n == m and not np.triu(np.abs(weights), 1).any()


def _sane(weights: Weights) -> bool:
    return bool(
        np.isfinite(weights).all() and (weights >= 0).all() and weights.sum(-1).max() < 1.001
    )


def _block_diagonal(blocks: list[Weights]) -> Weights:
    if len(blocks) == 1:
        return blocks[0]
    n, m = (sum(block.shape[axis] for block in blocks) for axis in (1, 2))
    whole = np.zeros((blocks[0].shape[0], n, m), np.float32)
    n0 = m0 = 0
    for block in blocks:
        whole[:, n0 : n0 + block.shape[1], m0 : m0 + block.shape[2]] = block
        n0, m0 = n0 + block.shape[1], m0 + block.shape[2]
    return whole


def _output_errors(
    model: Any,
    tensors: dict[str, Tensor],
    layers: list[LayerCalls],
    way: str,
    fast: bool,
    seed: int,
) -> dict[str, float]:
    """By module, how far its output in the capturing run is from its output in a plain run."""
    if way == "outputs":
        return {}
    modules = {layer.first.module for layer in layers}
    if fast:
        plain = plain_outputs(model, tensors, modules, seed)
    else:
        with implementation(model, "eager"):
            plain = plain_outputs(model, tensors, modules, seed)
    with module_outputs(model, modules) as watched:
        observe(model, tensors, way, fast=fast, seed=seed)
    return {name: _output_error(plain[name], watched[name]) for name in modules}


def _output_error(plain: list[Tensor], watched: list[Tensor]) -> float:
    if len(plain) != len(watched):
        return math.inf
    error = 0.0
    for a, b in zip(plain, watched, strict=True):
        error = worst(error, relative_error(b.nan_to_num(), a.nan_to_num()))
    return error


def _unseen(
    model: Any, tensors: dict[str, Tensor], calls: list[Call], way: str, seed: int
) -> set[str]:
    """Attention that happens without our seeing it, as two other ways of looking tell."""
    seen = {call.module for call in calls}
    traced, returned = witnesses(model, tensors, seed)
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
            f"the model's own {one.module}"
            for one in returned
            if _is_attention(one) and not _among(_rows(one.weights), recorded, 10 * bound)
        }
    return missing


def _is_attention(returned: Call) -> bool:
    """Some models return scores from before the softmax; those prove nothing."""
    assert returned.weights is not None
    return _sane(returned.weights.float().cpu().numpy())


def _means_heads(returned: Call, call: Call) -> bool:
    """Some models return the mean over heads in the place of each head."""
    weights = returned.weights
    assert weights is not None
    return weights.shape[1] > 1 and bool((weights[:, :1] == weights[:, 1:2]).all())


def _rows(weights: Tensor | None) -> Tensor:
    """Each row as one number, sorted: two maps with the same rows have the same numbers.

    The number is the product with one fixed random vector, so rows are told apart however the
    model folds heads, windows and batch.
    """
    assert weights is not None
    dice = torch.Generator().manual_seed(weights.shape[-1])
    vector = torch.randn(weights.shape[-1], generator=dice).to(weights.device)
    return (weights.float() @ vector).flatten().sort().values


def _among(rows: Tensor, recorded: list[Tensor], bound: float) -> bool:
    return any(
        one.shape == rows.shape and bool((one - rows).abs().max() <= bound) for one in recorded
    )
