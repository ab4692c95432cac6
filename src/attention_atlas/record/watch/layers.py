"""Which calls belong to which layer of which tower, and what are they called?

Calls are grouped by the model that made them and by whether they look at another sequence. Within a
tower a layer's number is its index in the model's own list of layers, so that layers without
attention count too. If that index does not rise from call to call (shared layers, nested stages),
the calls are counted instead.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from attention_atlas.record.watch.call import Call, same_memory

TowerKey = tuple[str, bool]  # path of the tower's model, cross or not


@dataclass(frozen=True)
class LayerCalls:
    """All calls of one layer: one per forward pass, or several if it takes its input in parts."""

    tower_key: TowerKey
    number: int
    depth: int
    steps: tuple[tuple[Call, ...], ...]

    @property
    def first(self) -> Call:
        return self.steps[0][0]


def layers_of(calls: list[Call]) -> list[LayerCalls]:
    """Group calls into layers; return them in the order in which they first ran."""
    steps_of: dict[tuple[TowerKey, int], list[tuple[Call, ...]]] = {}
    depths: dict[tuple[TowerKey, int], int] = {}
    for step in sorted({call.step for call in calls}):
        towers: dict[TowerKey, dict[tuple[str, int], list[Call]]] = {}
        for call in calls:
            if call.step == step:
                runs = towers.setdefault(call.tower_key, {})
                runs.setdefault((call.module, call.visit), []).append(call)
        for key, visits in towers.items():
            parts = [_merged(part) for part in visits.values()]
            numbers, depth = _numbers([part[0] for part in parts])
            for number, part in zip(numbers, parts, strict=True):
                steps_of.setdefault((key, number), []).append(tuple(part))
                depths[key, number] = depth
    return [
        LayerCalls(key, number, depths[key, number], tuple(steps))
        for (key, number), steps in steps_of.items()
    ]


def _merged(calls: list[Call]) -> list[Call]:
    """Join successive calls with the same queries and keys into one call with all their values."""
    merged = calls[:1]
    for call in calls[1:]:
        last = merged[-1]
        if all(same_memory(getattr(last, end), getattr(call, end)) for end in ("query", "key")):
            output = None
            if last.output is not None and call.output is not None:
                output = torch.cat([last.output, call.output], -1)
            value = torch.cat([last.value, call.value], -1)
            samples = last.samples + call.samples
            merged[-1] = replace(last, value=value, output=output, samples=samples)
        else:
            merged.append(call)
    return merged


def _numbers(firsts: list[Call]) -> tuple[list[int], int]:
    places = [call.place for call in firsts]
    known = [place for place in places if place is not None]
    if len(known) == len(places) and len({place[0] for place in known}) == 1:
        indices = [place[1] for place in known]
        if all(a < b for a, b in pairwise(indices)):
            return indices, known[0][2]
    return list(range(len(firsts))), len(firsts)


def name_towers(
    model: nn.Module, layers: list[LayerCalls], causal: set[TowerKey]
) -> dict[TowerKey, str]:
    """Return a short name for each tower: encoder, decoder, cross, vision, text…"""
    towers = list(dict.fromkeys(layer.tower_key for layer in layers))
    lone = len({key for key in towers if not key[1]}) == 1
    names: dict[TowerKey, str] = {}
    for key in towers:
        name = _tower_name(model, key, lone, key in causal)
        if name in names.values() and key[0]:
            name = f"{_last(key[0])}-{name}" if key[1] else _last(key[0])
        while name in names.values():
            name += "-2"
        names[key] = name
    return names


def _tower_name(model: nn.Module, key: TowerKey, lone: bool, causal: bool) -> str:
    path, cross = key
    if cross:
        return "cross"
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        side = stream_side(path)
        if side:
            return side
    if lone:
        return "decoder" if causal else "encoder"
    kind = modality(model, path)
    if kind != "text":
        return kind
    last = _last(path)
    return next((word for word in ("decoder", "encoder", "text") if word in last), _plain(last))


def _plain(last: str) -> str:
    return "text" if last in ("", "language_model", "model", "transformer") else last


def stream_side(path: str) -> str:
    """Return "encoder" or "decoder" if a path is inside one of them, else ""."""
    for part in path.split("."):
        if "decoder" in part:
            return "decoder"
        if "encoder" in part:
            return "encoder"
    return ""


def modality(model: nn.Module, path: str) -> str:
    """Return what a tower reads, "text", "vision" or "audio", as its model says."""
    try:
        owner: Any = model.get_submodule(path)
    except AttributeError:  # a name from output_attentions, not a part of the model
        owner = model
    declared = getattr(owner, "input_modalities", None) or "text"
    kinds = {declared} if isinstance(declared, str) else set(declared)
    if kinds & {"image", "video"} or _last(path).startswith(("vis", "image")):
        return "vision" if "text" not in kinds or owner is not model else "text"
    return "audio" if "audio" in kinds and "text" not in kinds else "text"


def _last(path: str) -> str:
    return path.rpartition(".")[2].replace(".", "-")
