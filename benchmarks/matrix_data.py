"""The same made-up maps for both sides: packets for our page, JSON as AttentionViz writes it."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.page.wire.about import About, InputLine, LayerInfo, TowerInfo
from attention_atlas.page.wire.maps import (
    MapGroup,
    MapInfo,
    MapNorms,
    MapPlaces,
    MapPoints,
    NameColumn,
    NumberColumn,
)
from attention_atlas.page.wire.packing import pack

WORDS = 1000
LENGTH = 50  # tokens of an input


def places(heads: int, points: int) -> npt.NDArray[np.uint16]:
    """(heads, points, 2): rings of blobs, a different number of them in each head."""
    draw = np.random.default_rng(0)
    blob = np.arange(points)[None] % (3 + np.arange(heads) % 5)[:, None]
    angle = blob * 2 * np.pi / (3 + np.arange(heads) % 5)[:, None]
    middle = 0.5 + 0.28 * np.stack([np.cos(angle), np.sin(angle)], -1)
    spread = draw.normal(0, 0.05, (heads, points, 2))
    return np.asarray(np.clip(middle + spread, 0, 1) * 65535, np.uint16)


def tokens(points: int) -> dict[str, npt.NDArray[Any]]:
    """Of each point: query and key of one token are `points / 2` apart."""
    token = np.arange(points) % (points // 2)
    return {
        "token": token.astype(np.uint32),
        "input": (token // LENGTH).astype(np.uint16),
        "position": (token % LENGTH).astype(np.uint16),
        "text": (token * 7919 % WORDS).astype(np.uint16),
    }


def packets(layers: int, across: int, points: int) -> dict[str, bytes]:
    """Path → packet: what our page asks for until all heads are on screen, and when recoloured."""
    heads = [f"L{layer}H{head}" for layer in range(layers) for head in range(across)]
    count, queries = len(heads), points // 2
    own = tokens(points)
    low, high = np.ones((count, 2), np.float32), np.full((count, 2), 9, np.float32)
    group = MapGroup("decoder", heads, queries, queries)
    infos = [LayerInfo(i, across, across, 64, 64, True, "text", "text") for i in range(layers)]
    tower = TowerInfo("decoder", "causal", "text", "text", layers, infos)
    inputs = [InputLine(i, f"made-up input {i}", "text", False) for i in range(queries // LENGTH)]
    about = About(
        title="made up", model="made-up", model_class="", kind="atlas", receipt_line="", exact=True,
        inputs=inputs, towers=[tower], has_values=False, notes=[],
        maps=[MapInfo("umap-2d", "umap", 2, [group], {})], no_maps="", can_compute=False,
        estimates=[], can_add=False, added=[], atlases=[],
    )  # fmt: skip
    position = (own["position"] / (LENGTH - 1) * 65534).astype(np.uint16)
    columns: list[NumberColumn | NameColumn] = [
        NumberColumn("position", "position", "number", "linear", False, 0.0, 1.0, position),
        NameColumn(
            "mod5", "modulo 5", "name", list("01234"), (own["position"] % 5).astype(np.uint8)
        ),
    ]
    made = {
        "about": about,
        "map/umap-2d/decoder": MapPlaces(
            "umap-2d", "decoder", heads, queries, places(count, points),
            np.tile(np.array([[0, 0], [1, 1]], np.float32), (count, 1, 1)),
            np.ones(count, np.float32),
            ["map.correlation"], np.full((count, 1), -0.5, np.float32),
        ),
        "points/umap-2d/decoder": MapPoints(
            "umap-2d", "decoder", queries, own["token"], own["input"], own["position"],
            [f"word{i}" for i in range(WORDS)], own["text"], np.zeros(points, np.uint8), columns,
        ),
        "norms/umap-2d/decoder": MapNorms(
            "umap-2d", "decoder", queries,
            np.random.default_rng(1).integers(0, 256, (count, points), np.uint8), low, high,
        ),
    }  # fmt: skip
    return {path: pack(answer) for path, answer in made.items()}


def as_json(heads: int, points: int) -> bytes:
    """One projection only, as lists of objects: the least that a page of this kind can load."""
    at = (places(heads, points) / 65535).round(5).tolist()
    own = {name: values.tolist() for name, values in tokens(points).items()}
    rows = [[{"x": x, "y": y} for x, y in head] for head in at]
    return json.dumps({"tokens": own, "heads": rows}).encode()


def attentionviz_bytes(heads: int, points: int) -> int:
    """What AttentionViz sends: every point of every head in three methods, 2-D and 3-D.

    Its fields and digits, for one head written out and the rest reckoned from it.
    """
    draw = np.random.default_rng(0)
    names = [f"{method}_{axis}{dims}" for method in ("tsne", "umap", "pca")
             for dims, axes in (("", "xy"), ("_3d", "xyz")) for axis in axes]  # fmt: skip
    rows = [
        dict(zip(names, draw.normal(0, 10, len(names)).tolist(), strict=True))
        for _ in range(points)
    ]
    return len(json.dumps(rows)) * heads
