"""A small atlas that has every kind of file, so that each can be damaged."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from transformers import ViTConfig, ViTImageProcessor, ViTModel

import attention_atlas as aa
from attention_atlas.store.labels import write_labels
from attention_atlas.store.relations import write_relations


def make_atlas(folder: Path) -> aa.Atlas:
    """Two pictures through a random ViT: shards, tables, pictures, scores, kinds, maps, places."""
    torch.manual_seed(0)
    luck = np.random.default_rng(0)
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        image_size=32, patch_size=8,
    )  # fmt: skip
    model = ViTModel(config).eval()
    pictures = folder / "pictures"
    pictures.mkdir(parents=True)
    for number in range(2):
        pixels = luck.integers(0, 255, (32, 32, 3), np.uint8)
        Image.fromarray(pixels).save(pictures / f"{number}.png")
    processor = ViTImageProcessor(size={"height": 32, "width": 32})
    atlas = aa.capture(
        model, pictures, tokenizer=processor, path=folder / "x.atlas", progress=False
    )
    atlas.measure(progress=False)
    atlas.layout("pca", tokens=20, progress=False)
    atlas.place_all("pca", progress=False)
    labels: list[str | None] = [("sky", None, "sea")[token % 3] for token in range(34)]
    write_labels(atlas.path, atlas.manifest, labels, [0.5] * 34, "planted")
    row = {
        "head": "L0H0", "relation": "nsubj", "way": "up", "right": 0.5, "baseline": 0.25,
        "offset": -1, "above": 0.25, "low": 0.25, "high": 0.75, "words": 8, "inputs": 2,
    }  # fmt: skip
    write_relations(atlas.path, atlas.manifest, pd.DataFrame([row]))
    return aa.open(atlas.path)


def files_of(folder: Path) -> list[Path]:
    """Every file of an atlas, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())
