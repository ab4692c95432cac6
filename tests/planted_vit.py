"""A vision transformer whose heads do what we planted, in weights written by hand.

7 × 7 patches of 16 pixels. L0H0 knows brightness, L0H1 hue, L0H2 looks at the patch on the left (in
the first column: at the class token), L0H3 looks along its row. The MLP of layer 0 measures waves
in the patch; L1H0 knows their angle, L1H1 their frequency. L1H2 looks at itself alone, with weights
that are the same for queries and keys; L1H3 looks at the class token.

The residual stream holds each feature twice, with either sign, and a large constant, so that layer
norms do no more than divide by a known number.
"""

from typing import Any

import numpy as np
import torch
import transformers as hf

SIDE, PATCH = 7, 16  # patches a side, pixels of a patch
WAVES = (2, 4, 8, 16)  # across the picture
ANGLES = 8
LARGE = 100.0
_FILTERS = [f"{phase} {f} {a}" for f in WAVES for a in range(ANGLES) for phase in ("sin", "cos")]
_ENERGIES = [f"energy {f} {a}" for f in WAVES for a in range(ANGLES)]
FEATURES = [
    "brightness", "redness", "greenness", "class", *(f"row {i}" for i in range(SIDE)),
    *(f"column {i}" for i in range(SIDE)), *_FILTERS, *_ENERGIES,
]  # fmt: skip
WIDTH = 2 * len(FEATURES) + 2 + (-(2 * len(FEATURES) + 2)) % 4
HEADS, SHARP = 4, 6.0


def planted_vit() -> tuple[Any, Any]:
    """The model, and its processor for pictures of 112 pixels a side."""
    config = hf.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS,
        intermediate_size=2 * len(_FILTERS), image_size=SIDE * PATCH, patch_size=PATCH,
    )  # fmt: skip
    model = hf.ViTModel(config, add_pooling_layer=False).eval()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.LayerNorm):
            torch.nn.init.ones_(module.weight)
            assert "layernorm" in name
    parts = dict(model.named_parameters())
    with torch.no_grad():
        _embed(parts)
        _plant(parts, 0, [_brightness(), _hue(), _left(), _row()])
        _plant(parts, 1, [_angle(), _frequency(), _itself(), _class()])
        _measure_waves(parts)
    processor = hf.ViTImageProcessorPil(size={"height": SIDE * PATCH, "width": SIDE * PATCH})
    return model, processor


def _at(feature: str) -> int:
    return 2 * FEATURES.index(feature)


def _write(vector: Any, feature: str, value: Any) -> None:
    """Into a residual vector (or the rows of a matrix), with either sign."""
    vector[_at(feature)] = torch.as_tensor(value)
    vector[_at(feature) + 1] = -torch.as_tensor(value)


def _find(parts: dict[str, Any], *ends: str) -> Any:
    (found,) = [part for name, part in parts.items() if name.endswith(ends)]
    return found


def _embed(parts: dict[str, Any]) -> None:
    projection = _find(parts, "projection.weight")  # (width, 3, PATCH, PATCH)
    each = 1.0 / PATCH**2
    light = torch.tensor([0.2126, 0.7152, 0.0722])
    _write(projection, "brightness", (light * each)[:, None, None].expand(3, PATCH, PATCH))
    red = torch.tensor([1.0, -0.5, -0.5]) * each
    green = torch.tensor([0.0, 1.0, -1.0]) * each * 3**0.5 / 2
    _write(projection, "redness", red[:, None, None].expand(3, PATCH, PATCH))
    _write(projection, "greenness", green[:, None, None].expand(3, PATCH, PATCH))
    at = (torch.arange(PATCH) + 0.5) / PATCH - 0.5
    for waves in WAVES:
        for angle in range(ANGLES):
            turned = torch.tensor(torch.pi * angle / ANGLES)
            along = torch.cos(turned) * at[None, :] + torch.sin(turned) * at[:, None]
            for phase, wave in (("sin", torch.sin), ("cos", torch.cos)):
                field = wave(2 * torch.pi * waves / SIDE * along)
                field = (field - field.mean()) * 2 * each / 3
                _write(projection, f"{phase} {waves} {angle}", field.expand(3, PATCH, PATCH))
    places = _find(parts, "position_embeddings")[0]  # (1 + patches, width)
    places[:, -2], places[:, -1] = LARGE, -LARGE
    for place in range(SIDE**2):
        _write(places[place + 1], f"row {place // SIDE}", 1.0)
        _write(places[place + 1], f"column {place % SIDE}", 1.0)
    _write(_find(parts, "cls_token")[0, 0], "class", 1.0)


# A head: what its queries and keys are made of, one list of (feature, factor) a dimension.
Head = tuple[list[list[tuple[str, float]]], list[list[tuple[str, float]]]]


def _same(dimensions: list[list[tuple[str, float]]]) -> Head:
    return dimensions, dimensions


def _brightness() -> Head:
    return _same([[("brightness", 2.0)]])


def _hue() -> Head:
    return _same([[("redness", 2.0)], [("greenness", 2.0)]])


def _left() -> Head:
    """Row as it is, columns moved by one; the first column wants the class token."""
    rows = [[(f"row {i}", SHARP)] for i in range(SIDE)]
    queries = [[(f"column {i + 1}", SHARP)] for i in range(SIDE - 1)]
    keys = [[(f"column {i}", SHARP)] for i in range(SIDE - 1)]
    return [*rows, *queries, [("column 0", 2 * SHARP)]], [*rows, *keys, [("class", 2 * SHARP)]]


def _row() -> Head:
    return _same([[(f"row {i}", SHARP)] for i in range(SIDE)])


def _angle() -> Head:
    def summed(turn: Any) -> list[tuple[str, float]]:
        return [
            (f"energy {f} {a}", float(turn(2 * np.pi * a / ANGLES)))
            for f in WAVES
            for a in range(ANGLES)
        ]

    return _same([summed(np.cos), summed(np.sin)])


def _frequency() -> Head:
    return _same(
        [[(f"energy {f} {a}", float(np.log2(f) - 2.5)) for f in WAVES for a in range(ANGLES)]]
    )


def _itself() -> Head:
    return _same([[(f"{axis} {i}", SHARP)] for axis in ("row", "column") for i in range(SIDE)])


def _class() -> Head:
    everyone = [(f"row {i}", SHARP) for i in range(SIDE)]
    return [everyone], [[("class", SHARP)]]


def _norm() -> float:
    """What a layer norm divides by."""
    return LARGE * float(np.sqrt(2 / WIDTH))


def _plant(parts: dict[str, Any], layer: int, heads: list[Head]) -> None:
    size = WIDTH // HEADS
    for side in (0, 1):
        ends = [("query.weight", "q_proj.weight"), ("key.weight", "k_proj.weight")][side]
        weight = _find({n: p for n, p in parts.items() if f".{layer}." in n}, *ends)
        for number, head in enumerate(heads):
            for dimension, made_of in enumerate(head[side]):
                for feature, factor in made_of:
                    row = weight[number * size + dimension]
                    row[_at(feature)] += factor * _norm() / 2 * size**0.25
                    row[_at(feature) + 1] -= factor * _norm() / 2 * size**0.25


def _measure_waves(parts: dict[str, Any]) -> None:
    """|sin| + |cos| of each filter: GELU of either sign, far from where it bends."""
    mine = {name: part for name, part in parts.items() if ".0." in name}
    reads = _find(mine, "intermediate.dense.weight", "mlp.fc1.weight")
    writes = _find(
        {n: p for n, p in mine.items() if "attention" not in n}, "output.dense.weight",
        "mlp.fc2.weight",
    )  # fmt: skip
    far = 20.0
    for number, name in enumerate(_FILTERS):
        energy = "energy " + name.partition(" ")[2]
        for sign in (0, 1):
            neuron = 2 * number + sign
            direction = 1 if sign == 0 else -1
            reads[neuron, _at(name)] = direction * far * _norm() / 2
            reads[neuron, _at(name) + 1] = -direction * far * _norm() / 2
            writes[_at(energy), neuron] = 1 / far
            writes[_at(energy) + 1, neuron] = -1 / far
