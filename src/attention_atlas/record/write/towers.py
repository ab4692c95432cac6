"""What does the finished atlas say of its towers, and of how far it is from the model?"""

from dataclasses import replace

import numpy as np

from attention_atlas.record.prove.layer_errors import worst
from attention_atlas.record.prove.receipt import Trial
from attention_atlas.store import manifest as m
from attention_atlas.store.reader import StoredAtlas


def towers(plan: Trial, exact: set[tuple[str, int]]) -> tuple[m.Tower, ...]:
    """The towers with those of their layers that are exact."""
    found: dict[str, list[m.Layer]] = {}
    depths: dict[str, int] = {}
    for layer in plan.layers:
        name = plan.names[layer.tower_key]
        found.setdefault(name, [])
        depths[name] = max(depths.get(name, 0), layer.depth)
        if (name, layer.number) not in exact:
            continue
        call, ends = layer.first, plan.ends[layer.tower_key, layer.number]
        found[name].append(
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
        for name, layers in found.items()
        if layers
    )


def with_stored_errors(
    receipt: m.Receipt, atlas: StoredAtlas, plan: Trial, probed: list[int]
) -> m.Receipt:
    """The receipt once more, from the folder as it lies on disk, for the probed inputs."""
    layers = []
    for one in receipt.layers:
        if one.exact:
            error = 0.0 if plan.own and (one.tower, one.layer) in plan.own[0] else one.stored_error
            for number, own in zip(probed, plan.own, strict=True):
                if (one.tower, one.layer) not in own or error is None:
                    continue
                stored = atlas.layer_weights(number, one.layer, one.tower)
                difference = np.abs(stored.astype(np.float64) - own[one.tower, one.layer])
                error = worst(error, float(difference.max()) if difference.size else 0.0)
            one = replace(one, stored_error=error)
        layers.append(one)
    return replace(receipt, layers=tuple(layers))
