"""Is what we recompute what the model computed?

Before a capture a few inputs are run plainly and watched in each way in turn. For every layer the
weights recomputed by the reader's own NumPy are compared with the weights the model itself used,
and the layer's output with that of the plain run. The first way that is exact everywhere is taken.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from attention_atlas.models.encode import Encoded, collate
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import ModelError
from attention_atlas.record.places.streams import (
    Ends,
    ends_of,
    in_odd_parts,
    real_ends,
    refuse_hidden_pads,
)
from attention_atlas.record.prove.layer_errors import Finding, Weights, bound_of, own_weights
from attention_atlas.record.prove.witnesses import output_errors, unseen
from attention_atlas.record.watch.door import runs_fused
from attention_atlas.record.watch.layers import LayerCalls, TowerKey, layers_of, name_towers
from attention_atlas.record.watch.linear import Made, linear_outputs
from attention_atlas.record.watch.pieces import CannotSplit, Forms, pieces
from attention_atlas.record.watch.ways import WAYS, observe, plain_run
from attention_atlas.store.manifest import Receipt


@dataclass
class Trial:
    """How this model is captured: what the trial settled."""

    way: str
    fast: bool
    alone: bool  # inputs run one at a time
    names: dict[TowerKey, str]
    causal: set[TowerKey]
    ends: dict[tuple[TowerKey, int], Ends]
    layers: list[LayerCalls]
    receipt: Receipt
    own: list[dict[tuple[str, int], Weights]] = field(default_factory=list)  # of each input tried
    made: Made = field(default_factory=dict)  # by linear layers, of the first input tried


@dataclass
class TrialInputs:
    """A few inputs as batches for the model."""

    batches: list[tuple[dict[str, Tensor], dict[str, Tensor]]]
    alone: bool


def try_ways(loaded: Loaded, items: list[Encoded], seed: int = 0) -> Trial:
    """Try each way on a few inputs; the first exact one, else the best with its faults named."""
    trials: list[Trial] = []
    problems: list[str] = []
    for way in WAYS:
        try:
            trial = _try(loaded, items, way, seed)
        except Exception as problem:  # models fail in every possible way; the next way may do
            problems.append(f"{way}: {type(problem).__name__}: {problem}")
            continue
        if trial is None:
            problems.append(f"{way}: no attention seen")
            continue
        if trial.receipt.exact:
            return trial
        trials.append(trial)
    if not trials:
        raise ModelError(
            f"no attention could be captured from {type(loaded.model).__name__} "
            f"({'; '.join(problems)})"
        )
    return max(
        trials, key=lambda p: (sum(one.exact for one in p.receipt.layers), -WAYS.index(p.way))
    )


def _try(loaded: Loaded, items: list[Encoded], way: str, seed: int) -> Trial | None:
    """As a batch if that is exact; else one by one, for some models do look at padding."""
    together = _together(loaded, items)
    if together is not None:
        try:
            trial = _compare(loaded, together, way, seed)
            if trial is None or trial.receipt.exact:
                return trial
        except CannotSplit:
            pass
    return _compare(loaded, _one_by_one(loaded, items), way, seed)


def _together(loaded: Loaded, items: list[Encoded]) -> TrialInputs | None:
    if len(items) == 1:
        return None
    try:
        return TrialInputs([collate(items, loaded)], alone=False)
    except ValueError:
        return None


def _one_by_one(loaded: Loaded, items: list[Encoded]) -> TrialInputs:
    return TrialInputs([collate([item], loaded) for item in items], alone=len(items) > 1)


def _compare(loaded: Loaded, given: TrialInputs, way: str, seed: int) -> Trial | None:
    model = loaded.model
    fast = way == "named" and runs_fused(model)
    found: list[LayerCalls] = []
    names: dict[TowerKey, str] = {}
    ends: dict[tuple[TowerKey, int], Ends] = {}
    causal: set[TowerKey] = set()
    findings: dict[tuple[TowerKey, int], Finding] = {}
    own: list[dict[tuple[str, int], Weights]] = []
    missing: set[str] = set()
    made: Made = {}
    for tensors, real in given.batches:
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
        outputs: dict[str, float] = {}
        if way != "outputs":
            modules = {layer.first.module for layer in layers}
            with linear_outputs(model, modules) as seen:
                plain = plain_run(model, tensors, modules, seed)
            made = made or seen
            outputs = output_errors(model, tensors, plain, way, fast, seed)
            missing |= unseen(model, plain, calls, way)
        for layer in layers:
            mine = findings.setdefault((layer.tower_key, layer.number), Finding())
            mine.output_error = max(mine.output_error, outputs.get(layer.first.module, 0.0))
            mine.in_odd_parts |= in_odd_parts(
                model, layer, ends[layer.tower_key, layer.number], real
            )
            mine.unknown |= {name for calls in layer.steps for c in calls for name in c.unknown}
            for row in range(batch):
                q, k = real_ends(ends[layer.tower_key, layer.number], real, row)
                parts = pieces(layer, row, batch, q, k, forms)
                mine.add(parts, layer)
                if all(part.weights is not None for part in parts):
                    key = (names[layer.tower_key], layer.number)
                    own[row - batch][key] = _block_diagonal([own_weights(part) for part in parts])
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
    return Trial(way, fast, given.alone, names, causal, ends, found, receipt, own, made)


def _renamed(
    model: Any,
    layers: list[LayerCalls],
    causal: set[TowerKey],
    before: dict[TowerKey, str],
    own: list[dict[tuple[str, int], Weights]],
) -> dict[TowerKey, str]:
    """Names again, now that it is known which towers are causal."""
    after = name_towers(model, layers, causal)
    new = {before[group]: after[group] for group in before}
    for weights in own:
        moved = {(new[tower], number): value for (tower, number), value in weights.items()}
        weights.clear()
        weights.update(moved)
    return after


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
