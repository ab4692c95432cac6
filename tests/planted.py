"""An atlas whose heads do what we planted: vectors are made, then written with the real store.

L0H0 knows only positions. L0H1 looks one token ahead. L0H2 knows only what words mean. L0H3 looks
at the first token and, apart from that, one token back. L0H4 is L0H2 with short queries and long
keys, which gives the same attention.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.atlas import Atlas, open_atlas
from attention_atlas.models.inputs import Input
from attention_atlas.record.write.tables import input_row, input_table, token_table
from attention_atlas.store.form import CAUSAL, FULL, Form
from attention_atlas.store.manifest import Layer, LayerReceipt, Receipt, Tower
from attention_atlas.store.parts import Contents
from attention_atlas.store.shard import Block, Packer
from attention_atlas.store.write import Writer

Floats = npt.NDArray[np.float64]
WORDS = {
    "animal": ["cat", "dog", "horse", "fox", "goat"],
    "town": ["Paris", "Rome", "Lima", "Oslo", "Cairo"],
    "colour": ["red", "green", "blue", "white", "black"],
    "number": ["one", "two", "three", "four", "five"],
    "verb": ["walks", "sings", "sleeps", "jumps", "waits"],
}
WIDTH = 32
HEADS = 5
LONGEST = 40
GAP = 12.0  # how much longer than its queries the keys of L0H4 are


def sentences(count: int, seed: int = 0) -> list[list[str]]:
    luck = np.random.default_rng(seed)
    every = [word for words in WORDS.values() for word in words]
    return [
        ["<s>", *luck.choice(every, size=int(luck.integers(20, LONGEST)))] for _ in range(count)
    ]


def vectors(texts: list[list[str]], seed: int = 0) -> tuple[Floats, Floats]:
    """Queries and keys (heads, all tokens, width)."""
    luck = np.random.default_rng(seed)

    def noise(size: float, count: int) -> Floats:
        return np.asarray(size * luck.standard_normal((count, WIDTH)) / np.sqrt(WIDTH))

    position = np.concatenate([np.arange(len(text)) for text in texts])
    words = [word for text in texts for word in text]
    count = len(words)
    along = np.pi * position[:, None] / LONGEST * np.array([1.0, 0.5])
    turn = np.linalg.qr(luck.standard_normal((WIDTH, WIDTH)))[0]
    curve = np.concatenate([np.sin(along), np.cos(along)], 1) @ turn[:4]
    place = noise(6.0, LONGEST + 1)  # unrelated for any two positions
    kind = {word: number for number, words in enumerate(WORDS.values()) for word in words}
    meaning = noise(6.0, len(WORDS) + 1)
    spelled = {word: noise(1.0, 1)[0] for word in sorted({*kind, "<s>"})}
    means = np.array([meaning[kind.get(word, len(WORDS))] + spelled[word] for word in words])
    first, sink = position == 0, 6 * turn[5]
    beside = place - np.outer(place @ turn[5], turn[5])  # so that the sink sees none of it
    back = beside[np.maximum(position - 1, 0)] / 2
    queries = np.stack([
        6 * curve + noise(1.0, count),
        place[position + 1] + noise(0.3, count),
        means + noise(0.3, count),
        sink + back + noise(0.1, count),
        (means + noise(0.3, count)) / GAP**0.5,
    ])  # fmt: skip
    keys = np.stack([
        6 * curve + noise(1.0, count),
        place[position] + noise(0.3, count),
        means + noise(0.3, count),
        np.where(first[:, None], 3 * sink, 3 * beside[position]) + noise(0.1, count),
        (means + noise(0.3, count)) * GAP**0.5,
    ])  # fmt: skip
    return queries, keys


def planted(folder: Path, count: int = 40, columns: dict[str, list[Any]] | None = None) -> Atlas:
    """The atlas of so many sentences; `columns` are the person's own, a value a sentence."""
    texts = sentences(count)
    queries, keys = vectors(texts)
    return write(folder, texts, queries, keys, columns)


def write(
    folder: Path, texts: list[list[str]], queries: Floats, keys: Floats,
    columns: dict[str, list[Any]] | None = None, form: Form = FULL,
    keep: tuple[str, ...] = ("query", "key"),
) -> Atlas:  # fmt: skip
    """Any vectors (heads, all tokens, width) as an atlas of one layer."""
    heads, _, width = queries.shape
    sizes = [len(text) for text in texts]
    blocks = [Block(number, n, n, form) for number, n in enumerate(sizes)]
    packer = Packer()
    tensors: dict[str, npt.NDArray[Any]] = {"decoder.L0.blocks": packer.blocks(blocks)}
    for what, vectors in (("query", queries), ("key", keys)):
        if what in keep:
            tensors[f"decoder.L0.{what}"] = vectors.astype(np.float32)
    own = columns or {}
    given = [
        Input("text", text=" ".join(text[1:]), columns={k: v[i] for k, v in own.items()})
        for i, text in enumerate(texts)
    ]
    rows = [
        input_row(i, one, boundary=-1, prompt=-1, truncated=False, images=[])
        for i, one in enumerate(given)
    ]
    writer = Writer(folder, "planted", {}, overwrite=False)
    tokens = token_table([(i, "text", _columns(text)) for i, text in enumerate(texts)])
    tables = {"inputs": input_table(rows, list(own)), "tokens": tokens}
    writer.add(0, Contents(tensors | packer.tensors, tables))
    layer = Layer(0, heads, heads, width, width, width**-0.5, None, False, "text", "text", "")
    role = "causal" if form is CAUSAL else "self"
    writer.finish(
        model="planted", revision=None, model_class="Planted", streams=("text",), keep=keep,
        towers=(Tower("decoder", role, 1, (layer,)),),
        receipt=Receipt("named", "float32", 1e-5, (LayerReceipt("decoder", 0, 0, 0, 0, True),)),
    )  # fmt: skip
    return open_atlas(folder)


def _columns(text: list[str]) -> dict[str, Any]:
    n = len(text)
    special = [word == "<s>" for word in text]
    return {
        "text": text, "id": [-1] * n, "special": special, "start": [-1] * n, "end": [-1] * n,
        "segment": [-1 if flag else 0 for flag in special],
        "word": [-1 if flag else i - 1 for i, flag in enumerate(special)],
        "row": [-1] * n, "column": [-1] * n,
    }  # fmt: skip
