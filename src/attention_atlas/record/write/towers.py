"""What does the manifest say about the towers, and about the error of the stored weights?"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from attention_atlas.models.threads import matrix_threads
from attention_atlas.names.errors import ModelError
from attention_atlas.record.prove.layer_errors import STORED_BOUND, worst
from attention_atlas.record.prove.on_disk import Kept, stored_error
from attention_atlas.record.prove.receipt import Trial
from attention_atlas.store import manifest as m
from attention_atlas.store.cores import each
from attention_atlas.store.reader import StoredAtlas


def towers(plan: Trial, exact: set[tuple[str, int]]) -> tuple[m.Tower, ...]:
    """Return the towers, each with its exact layers."""
    layers_by_tower: dict[str, list[m.Layer]] = {}
    depths: dict[str, int] = {}
    for layer in plan.layers:
        name = plan.names[layer.tower_key]
        layers_by_tower.setdefault(name, [])
        depths[name] = max(depths.get(name, 0), layer.depth)
        if (name, layer.number) not in exact:
            continue
        call, ends = layer.first, plan.ends[layer.tower_key, layer.number]
        layers_by_tower[name].append(
            m.Layer(
                layer=layer.number,
                heads=call.query.shape[1],
                groups=call.key.shape[1],
                width=call.query.shape[3],
                value_width=call.value.shape[3],
                scale=call.scale,
                softcap=call.softcap,
                sink=call.sink is not None,
                queries=ends.queries,
                keys=ends.keys,
                module=call.module,
                visit=call.visit,
            )
        )
    roles = {
        plan.names[group]: "cross" if group[1] else "causal" if group in plan.causal else "self"
        for group in plan.names
    }
    return tuple(
        m.Tower(name, roles[name], depths[name], tuple(sorted(layers, key=lambda x: x.layer)))
        for name, layers in layers_by_tower.items()
        if layers
    )


@dataclass(frozen=True)
class Probed:
    """Inputs whose weights on disk are compared: whole if the trial had them whole, else by rows.

    kept  by number of a cut input: layer (tower.Lnumber) → strongest weights of sampled rows
    """

    inputs: tuple[int, ...]
    kept: Mapping[int, Mapping[str, Kept]]


def with_stored_errors(
    receipt: m.Receipt, atlas: StoredAtlas, trial: Trial, probed: Probed
) -> m.Receipt:
    """Return the receipt with the errors of weights read from disk, for the probed inputs."""

    def checked(layer: m.LayerReceipt) -> m.LayerReceipt:
        if not layer.exact:
            return layer
        return replace(
            layer, stored_error=_stored_error(layer, atlas, trial, probed, receipt.bound)
        )

    with matrix_threads(1):  # layers are shared among the cores; threads of products would wait
        return replace(receipt, layers=tuple(each(checked, receipt.layers)))


def _stored_error(
    layer: m.LayerReceipt, atlas: StoredAtlas, trial: Trial, probed: Probed, bound: float
) -> float | None:
    """Return the largest error of a layer's weights on disk.

    Weights of the run itself must be those on disk. Those of the trial may be others: in a few
    models (DeepSeek's sparse attention) an input attends otherwise beside longer inputs.
    """
    name = (layer.tower, layer.layer)
    differences = []
    for place, number in enumerate(probed.inputs):
        kept = probed.kept.get(number, {}).get(f"{layer.tower}.L{layer.layer}")
        if kept is not None:
            differences.append(stored_error(atlas, number, name, kept))
            _refuse_spoiled(layer, differences[-1], bound)
        elif place < len(trial.own) and name in trial.own[place] and not any(trial.cut[place:][:1]):
            stored = atlas.layer_weights(number, layer.layer, layer.tower).astype(np.float64)
            off = np.abs(stored - trial.own[place][name])
            differences.append(float(off.max()) if off.size else 0.0)
    return functools.reduce(worst, differences) if differences else layer.stored_error


def _refuse_spoiled(layer: m.LayerReceipt, error: float, bound: float) -> None:
    """Raise a ModelError if weights on disk differ by more than rounding can explain."""
    if not error <= max(10 * STORED_BOUND, 8 * bound):
        raise ModelError(
            f"the weights of layer {layer.layer} of {layer.tower}, read from disk, are not those "
            f"of the model (off by {error:.1e}); the capture was stopped"
        )
