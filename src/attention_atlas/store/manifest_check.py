"""Does a manifest make sense as a whole? Its parts have the right types already.

A manifest that passes can be used everywhere without a further look: heads divide by groups, every
layer has a receipt, paths stay inside the folder, counts add up.
"""

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attention_atlas.store.manifest import Layer, Manifest, Tower

ROLES = ("self", "causal", "cross")
KEPT = ("query", "key", "value", "weights")
TABLES = ("inputs.parquet", "tokens.parquet")
_NAME = re.compile(r"[\w-]+")  # of a tower, as in names/head.py
_SUM = re.compile(r"[0-9a-f]{64}")
_SHARD = re.compile(r"vectors/\d{5,}\.safetensors")
_MOST = {"heads": 2**16, "groups": 2**16, "width": 2**20, "value_width": 2**20, "layer": 2**20}


def check_manifest(manifest: "Manifest") -> None:
    """Raise a ValueError that says what is wrong with a manifest, if anything is."""
    _need(manifest.format >= 1, f"format is {manifest.format}")
    _need(manifest.inputs >= 1 and manifest.tokens >= 0, "inputs and tokens are below zero")
    _need(len(manifest.towers) > 0, "it has no towers")
    _refuse_twice((tower.name for tower in manifest.towers), "tower")
    _need(set(manifest.keep) <= set(KEPT), f"keep is {', '.join(manifest.keep)[:80]}")
    for tower in manifest.towers:
        _check_tower(tower, manifest.streams)
    proven = {(layer.tower, layer.layer) for layer in manifest.receipt.layers}
    for tower in manifest.towers:
        for layer in tower.layers:
            _need(
                (tower.name, layer.layer) in proven,
                f"the receipt lacks layer {layer.layer} of tower {tower.name}",
            )
    _check_files(manifest)
    _check_options(manifest.options, manifest.inputs)


def _check_tower(tower: "Tower", streams: tuple[str, ...]) -> None:
    _need(_NAME.fullmatch(tower.name) is not None, f"a tower is named {tower.name[:40]!r}")
    _need(tower.role in ROLES, f"the role of tower {tower.name} is {tower.role[:40]!r}")
    _need(0 <= tower.depth <= 2**20, f"the depth of tower {tower.name} is {tower.depth}")
    _refuse_twice((str(layer.layer) for layer in tower.layers), f"layer of tower {tower.name}")
    for layer in tower.layers:
        where = f"layer {layer.layer} of tower {tower.name}"
        for name, most in _MOST.items():
            value = getattr(layer, name)
            least = 1 if name in ("heads", "groups") else 0
            _need(least <= value <= most, f"{name} of {where} is {value}")
        _need(
            layer.layer < tower.depth, f"tower {tower.name} has {tower.depth} layers, not {where}"
        )
        _check_layer(layer, where)
        for stream in (layer.queries, layer.keys):
            _need(stream in streams, f"{where} has tokens of {stream[:40]!r}, which is no stream")


def _check_layer(layer: "Layer", where: str) -> None:
    _need(
        layer.heads % layer.groups == 0, f"{where} has {layer.heads} heads in {layer.groups} groups"
    )
    _need(math.isfinite(layer.scale), f"the scale of {where} is {layer.scale}")
    cap = layer.softcap
    _need(cap is None or (math.isfinite(cap) and cap > 0), f"the soft cap of {where} is {cap}")


def _check_files(manifest: "Manifest") -> None:
    for table in TABLES:
        _need(table in manifest.tables, f"tables lack {table}")
        _need(_SUM.fullmatch(manifest.tables[table]) is not None, f"{table} has no checksum")
    for shard in manifest.shards:
        _need(_SHARD.fullmatch(shard.file) is not None, f"a shard is called {shard.file[:60]!r}")
        _need(_SUM.fullmatch(shard.checksum) is not None, f"{shard.file} has no checksum")
        _need(shard.inputs >= 0 and shard.bytes >= 0, f"{shard.file} has a size below zero")
    _refuse_twice((shard.file for shard in manifest.shards), "shard")
    held = sum(shard.inputs for shard in manifest.shards)
    _need(held == manifest.inputs, f"shards hold {held} inputs instead of {manifest.inputs}")


def _check_options(options: dict[str, Any], inputs: int) -> None:
    kept = options.get("kept_inputs")
    if kept is not None:
        numbers = isinstance(kept, list) and all(type(number) is int for number in kept)
        _need(numbers and all(0 <= number < inputs for number in kept), "kept_inputs are no inputs")
    for name, kind in (("seed", int), ("skipped", list), ("weight_correlation", dict),
                       ("edits", list), ("vectors", str), ("fingerprint", str), ("made_from", str),
                       ("notes", list), ("holes", str), ("headvis", dict)):  # fmt: skip
        value = options.get(name)
        _need(value is None or type(value) is kind, f"options.{name} is {ascii(value)[:40]}")
    correlations = (options.get("weight_correlation") or {}).values()
    numbers = all(isinstance(row, list) and all(map(_is_number, row)) for row in correlations)
    _need(numbers, "options.weight_correlation holds no numbers")


def _refuse_twice(names: Iterable[str], what: str) -> None:
    seen = set[str]()
    for name in names:
        _need(name not in seen, f"it has {what} {name[:40]} twice")
        seen.add(name)


def _need(right: bool, otherwise: str) -> None:
    if not right:
        raise ValueError(otherwise)


def _is_number(value: Any) -> bool:
    """Tell whether a value of the manifest is a number, or the word for one that JSON lacks."""
    return isinstance(value, int | float) or value in ("nan", "inf", "-inf")
