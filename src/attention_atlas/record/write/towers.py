"""What does the manifest say about the towers, and about the error of the stored weights?"""

from dataclasses import replace

import numpy as np

from attention_atlas.record.prove.layer_errors import worst
from attention_atlas.record.prove.receipt import Trial
from attention_atlas.store import manifest as m
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


def with_stored_errors(
    receipt: m.Receipt, atlas: StoredAtlas, plan: Trial, probed: list[int]
) -> m.Receipt:
    """Return the receipt with the errors of weights read from disk, for the probed inputs."""
    layers = []
    for layer in receipt.layers:
        if layer.exact:
            name = (layer.tower, layer.layer)
            error = 0.0 if plan.own and name in plan.own[0] else layer.stored_error
            for number, trial_weights in zip(probed, plan.own, strict=True):
                if name not in trial_weights or error is None:
                    continue
                stored = atlas.layer_weights(number, layer.layer, layer.tower)
                difference = np.abs(stored.astype(np.float64) - trial_weights[name])
                error = worst(error, float(difference.max()) if difference.size else 0.0)
            layer = replace(layer, stored_error=error)
        layers.append(layer)
    return replace(receipt, layers=tuple(layers))
