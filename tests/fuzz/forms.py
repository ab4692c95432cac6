"""An atlas with every kind of mask and bias that a shard can hold, of random vectors.

The encoder's layers: 0 masks of bits, one for each head; 1 a window of offsets with a soft cap; 2 a
bias by key and heads that share keys; 3 a dense bias, with sinks; 4 inputs cut into two blocks. The
layer between the towers has a mask of bits that all heads share.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.atlas import Atlas, open_atlas
from attention_atlas.models.inputs import Input
from attention_atlas.record.write.tables import input_row, input_table, token_table
from attention_atlas.store.form import FULL, Form
from attention_atlas.store.manifest import Layer, LayerReceipt, Receipt, Tower
from attention_atlas.store.parts import Contents
from attention_atlas.store.shard import Block, Packer
from attention_atlas.store.write import Writer

HEADS, WIDTH = 2, 4
TEXTS = (("a", "cat", "sat", "on", "mats"), ("dogs", "ran", "home", "now"))  # of the encoder
TARGETS = (("ein", "hund"), ("katzen", "liefen", "fort"))
Arrays = dict[str, npt.NDArray[Any]]


def write_forms(folder: Path) -> Atlas:
    """Write the atlas with the real store and open it."""
    luck = np.random.default_rng(0)
    packer, tensors = Packer(), Arrays()
    for number in range(5):
        tensors |= _layer(f"encoder.L{number}", packer, _blocks(number, luck), number, luck)
    tensors |= _layer("cross.L0", packer, _crossing(luck), 0, luck)
    rows = [
        input_row(
            i, Input("pair", text=" ".join(text), second=" ".join(target)), boundary=-1, prompt=-1,
            truncated=False, images=[],
        )
        for i, (text, target) in enumerate(zip(TEXTS, TARGETS, strict=True))
    ]  # fmt: skip
    sides = {"source": TEXTS, "target": TARGETS}
    tokens = token_table(
        [(i, stream, _columns(texts[i])) for i in range(2) for stream, texts in sides.items()]
    )
    writer = Writer(folder, "forms", {}, overwrite=False)
    tables = {"inputs": input_table(rows, []), "tokens": tokens}
    writer.add(0, Contents(tensors | packer.tensors, tables))
    towers = (
        Tower("encoder", "self", 5, tuple(_about(number, "source") for number in range(5))),
        Tower("cross", "cross", 1, (_about(0, "target"),)),
    )
    receipts = tuple(
        LayerReceipt(tower.name, layer.layer, 0, 0, 0, True)
        for tower in towers
        for layer in tower.layers
    )
    writer.finish(
        model="forms", revision=None, model_class="Made", streams=("source", "target"),
        keep=("query", "key"), towers=towers, receipt=Receipt("named", "float32", 1e-5, receipts),
    )  # fmt: skip
    return open_atlas(folder)


def _about(number: int, queries: str) -> Layer:
    groups, sink, softcap = 1 if number == 2 else HEADS, number == 3, 5.0 if number == 1 else None
    return Layer(
        number, HEADS, groups, WIDTH, WIDTH, WIDTH**-0.5, softcap, sink, queries, "source", ""
    )


def _blocks(number: int, luck: np.random.Generator) -> list[Block]:
    blocks = []
    for i, text in enumerate(TEXTS):
        n = len(text)
        hidden = np.triu(luck.random((HEADS, n, n)) < 0.4, 1)  # a token always sees itself
        form = {
            0: Form(hidden=hidden),
            1: Form(-1, 1, None, "offsets", luck.standard_normal((HEADS, 2 * n - 1))),
            2: Form(bias_kind="columns", bias=luck.standard_normal((1, n))),
            3: Form(bias_kind="dense", bias=luck.standard_normal((HEADS, n, n))),
        }.get(number, FULL)
        sizes = (n,) if number != 4 else (2, n - 2)
        blocks += [Block(i, size, size, form) for size in sizes]
    return blocks


def _crossing(luck: np.random.Generator) -> list[Block]:
    blocks = []
    for i, (text, target) in enumerate(zip(TEXTS, TARGETS, strict=True)):
        hidden = luck.random((1, len(target), len(text))) < 0.4
        hidden[:, :, 0] = False
        blocks.append(Block(i, len(target), len(text), Form(hidden=hidden)))
    return blocks


def _layer(
    stem: str, packer: Packer, blocks: list[Block], number: int, luck: np.random.Generator
) -> Arrays:
    n, m = (sum(sizes) for sizes in zip(*((block.n, block.m) for block in blocks), strict=True))
    groups = 1 if number == 2 else HEADS
    tensors: Arrays = {
        f"{stem}.blocks": packer.blocks(blocks),
        f"{stem}.query": luck.standard_normal((HEADS, n, WIDTH)).astype(np.float32),
        f"{stem}.key": luck.standard_normal((groups, m, WIDTH)).astype(np.float32),
    }
    return tensors | ({f"{stem}.sink": np.ones(HEADS, np.float32)} if number == 3 else {})


def _columns(text: tuple[str, ...]) -> dict[str, Any]:
    n = len(text)
    return {
        "text": list(text), "id": [-1] * n, "special": [False] * n, "start": [-1] * n,
        "end": [-1] * n, "segment": [0] * n, "word": list(range(n)), "row": [-1] * n,
        "column": [-1] * n,
    }  # fmt: skip
