"""Small atlases that have every kind of file, so that each can be damaged.

pictures  a ViT: pictures, patches, labels of patches
texts     T5: two towers and a third between them, biases by offset
written   GPT-2 with its head: generated tokens, stored weights, logits
forms     made by hand: masks of bits, every kind of bias, windows, sinks, soft caps, shared keys
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers
from PIL import Image
from transformers import ViTConfig, ViTImageProcessor, ViTModel

import attention_atlas as aa
from attention_atlas.store.labels import write_labels
from attention_atlas.store.relations import write_relations
from tests.atlases import word_tokenizer
from tests.fuzz.forms import write_forms

TEXTS = ("she sees the small elephant", "the small elephant sees den kleinen elefanten")


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
    return _finished(atlas)


def make_texts(folder: Path) -> aa.Atlas:
    """Two sentences through a random T5, which reads one and writes the other."""
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=20, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, pad_token_id=0,
        eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config).eval()
    given = [{"text": text, "second": other} for text, other in (TEXTS, TEXTS[::-1])]
    return _captured(model, given, folder)


def small_writer() -> Any:
    """Return a random GPT-2 with its head."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=1,
        eos_token_id=1,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval()


def make_written(folder: Path) -> aa.Atlas:
    """Two sentences through a random GPT-2, which writes on; weights are stored too."""
    keep = ("query", "key", "value", "weights")
    return _captured(small_writer(), list(TEXTS), folder, keep=keep, generate=2)


def make_forms(folder: Path) -> aa.Atlas:
    """Random vectors with every kind of mask and bias."""
    return _finished(write_forms(folder / "x.atlas"))


ATLASES: dict[str, Callable[[Path], aa.Atlas]] = {
    "pictures": make_atlas, "texts": make_texts, "written": make_written, "forms": make_forms,
}  # fmt: skip


def _captured(model: Any, given: list[Any], folder: Path, **options: Any) -> aa.Atlas:
    return _finished(
        aa.capture(
            model, given, tokenizer=word_tokenizer(), path=folder / "x.atlas", progress=False,
            **options,
        )
    )  # fmt: skip


def _finished(atlas: aa.Atlas) -> aa.Atlas:
    """Measure, lay out and label an atlas, so that it has every file that is added later."""
    atlas.measure(progress=False)
    atlas.layout("pca", tokens=20, progress=False)
    atlas.place_all("pca", progress=False)
    count = atlas.manifest.tokens
    labels: list[str | None] = [("sky", None, "sea")[token % 3] for token in range(count)]
    write_labels(atlas.path, atlas.manifest, labels, [0.5] * count, "planted")
    row = {
        "head": str(atlas.heads()["head"].iloc[0]), "relation": "nsubj", "way": "up",
        "right": 0.5, "baseline": 0.25, "offset": -1, "above": 0.25, "low": 0.25, "high": 0.75,
        "words": 8, "inputs": 2,
    }  # fmt: skip
    write_relations(atlas.path, atlas.manifest, pd.DataFrame([row]))
    return aa.open(atlas.path)


def files_of(folder: Path) -> list[Path]:
    """Every file of an atlas, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())
