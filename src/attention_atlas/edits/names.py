"""Which heads of a model does an edit name?

`L5H1` is a head, `L5` a layer, "all" every head. A model with several towers needs the tower:
`cross.L5H1`, `cross.L5`.
"""

import re
from collections.abc import Iterable

from attention_atlas.edits.anatomy import Anatomy, ModelLayer
from attention_atlas.edits.edit import ALL
from attention_atlas.names.errors import PickError

_NAME = re.compile(r"(?:(?P<tower>[\w-]+)\.)?L(?P<layer>\d+)(?:H(?P<head>\d+))?")


def heads_by_layer(names: Iterable[str], anatomy: Anatomy) -> dict[ModelLayer, tuple[int, ...]]:
    """Return the heads that are named, by layer; a head that the model lacks is a PickError."""
    picked: dict[ModelLayer, set[int]] = {}
    for name in names:
        if name == ALL:
            for layer in anatomy.layers:
                picked.setdefault(layer, set()).update(range(layer.heads))
            continue
        layer, head = _pick(name, anatomy)
        picked.setdefault(layer, set()).update(range(layer.heads) if head is None else [head])
    return {layer: tuple(sorted(heads)) for layer, heads in picked.items()}


def _pick(name: str, anatomy: Anatomy) -> tuple[ModelLayer, int | None]:
    match = _NAME.fullmatch(name)
    if not match:
        raise PickError(
            f"no head is named {name!r}; write layer and head from zero, as in L5H1, a layer as in "
            f'L5, or "{ALL}"'
        )
    towers = anatomy.towers
    tower = match["tower"] or (towers[0] if len(towers) == 1 else "")
    if tower not in towers:
        there = ", ".join(towers)
        asked = f"no tower {tower!r}" if tower else f"{len(towers)} towers"
        raise PickError(f"{name} was asked for and the model has {asked}; its towers are: {there}")
    layers = {layer.number: layer for layer in anatomy.layers if layer.tower == tower}
    layer = layers.get(int(match["layer"]))
    head = None if match["head"] is None else int(match["head"])
    if layer is None or (head is not None and head >= layer.heads):
        there = f"layers {_ranges(layers)}" if layer is None else f"heads 0 to {layer.heads - 1}"
        raise PickError(f"there is no head {name}; {tower} has {there}")
    return layer, head


def _ranges(numbers: Iterable[int]) -> str:
    several = sorted(numbers)
    if several == list(range(several[0], several[-1] + 1)) and len(several) > 1:
        return f"{several[0]} to {several[-1]}"
    return ", ".join(map(str, several))
