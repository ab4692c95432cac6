"""How are arrays that another tool made written as an atlas?

Nothing is captured here, so the receipt says where the numbers come from, and no more than that.
"""

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from attention_atlas.atlas import Atlas
from attention_atlas.models.inputs import Input
from attention_atlas.names.errors import InputError
from attention_atlas.names.token_text import can_be_written, looks_special, words
from attention_atlas.record.write.tables import input_row, input_table, token_table
from attention_atlas.store.files import Array
from attention_atlas.store.form import CAUSAL, FULL, Form
from attention_atlas.store.manifest import Receipt, Tower
from attention_atlas.store.parts import Contents
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.shard import Block, Packer
from attention_atlas.store.write import Writer, check_folder


@dataclass(frozen=True)
class GivenInput:
    """The tokens of one input: stream → texts, and where its second text begins (−1: none)."""

    streams: Mapping[str, Sequence[str]]
    boundary: int = -1
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GivenAtlas:
    """Everything of an atlas but its vectors and weights."""

    towers: tuple[Tower, ...]
    inputs: Sequence[GivenInput]
    receipt: Receipt
    keep: tuple[str, ...]
    model: str
    made_from: str  # the tool
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GivenShard:
    """The tensors of some inputs that follow each other, without their masks."""

    inputs: range
    tensors: Mapping[str, Array]
    blocks: Mapping[str, list[Block]]  # of each layer, as in decoder.L3


def write_given(
    path: str | Path | None, given: GivenAtlas, shards: Iterable[GivenShard]
) -> Atlas:  # fmt: skip
    """Write arrays as an atlas, in a temporary folder if `path` is None; return the atlas."""
    if path is not None:
        _write(Path(path), given, shards)
        return Atlas.open(path)
    folder = Path(tempfile.mkdtemp(prefix="attention-atlas-"))
    try:
        _write(folder, given, shards)
        stored = StoredAtlas.open(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(stored, shutil.rmtree, folder, ignore_errors=True)
    return Atlas.of(stored)


def seen_form(causal: bool) -> Form:
    """Return the form of a layer whose rows see all keys, or only those before them."""
    return CAUSAL if causal else FULL


def packed(weights: Sequence[Array]) -> Array:
    """Join the weights (H, N, M) of several blocks as a shard holds them: (H, Σ N·M)."""
    return np.concatenate([block.reshape(len(block), -1) for block in weights], axis=1)


def _write(folder: Path, given: GivenAtlas, shards: Iterable[GivenShard]) -> None:
    check_folder(folder)
    _check_texts(given)
    name = hashlib.sha256(f"{given.made_from} {given.model}".encode()).hexdigest()
    writer = Writer(folder, name, {}, overwrite=False)
    numbers = _numbers(given.inputs)
    for number, shard in enumerate(shards):
        packer = Packer()
        rows = {f"{stem}.blocks": packer.blocks(blocks) for stem, blocks in shard.blocks.items()}
        tables = _tables(given, shard.inputs, numbers)
        writer.add(number, Contents({**shard.tensors, **rows, **packer.tensors}, tables))
    streams = dict.fromkeys(name for each in given.inputs for name in each.streams)
    writer.finish(
        model=given.model, revision=None, model_class="", towers=given.towers,
        streams=tuple(streams), keep=given.keep, receipt=given.receipt,
        options={"made_from": given.made_from, **given.options},
        versions={name: version(name) for name in ("attention-atlas", "numpy")},
    )  # fmt: skip


def _tables(given: GivenAtlas, inputs: range, numbers: Mapping[str, int]) -> dict[str, Any]:
    """Return the tables of some inputs."""
    rows, tokens, own = [], [], dict.fromkeys(n for one in given.inputs for n in one.columns)
    for number in inputs:
        one = given.inputs[number]
        about = Input(**_texts(one), columns=dict(one.columns))  # type: ignore[arg-type]
        rows.append(
            input_row(number, about, boundary=one.boundary, prompt=-1, truncated=False, images=[])
        )
        tokens += [
            (number, stream, _columns(texts, one.boundary, numbers))
            for stream, texts in one.streams.items()
        ]
    return {"inputs": input_table(rows, list(own)), "tokens": token_table(tokens)}


def _texts(one: GivenInput) -> dict[str, str]:
    """Return the kind and the texts of an input, as far as its tokens tell them."""
    first, *rest = (list(texts) for texts in one.streams.values())
    if rest:
        return {"kind": "pair", "text": " ".join(first), "second": " ".join(rest[0])}
    if one.boundary < 0:
        return {"kind": "text", "text": " ".join(first)}
    parts = first[: one.boundary], first[one.boundary :]
    return {"kind": "pair", "text": " ".join(parts[0]), "second": " ".join(parts[1])}


def _columns(
    texts: Sequence[str], boundary: int, numbers: Mapping[str, int]
) -> dict[str, list[Any]]:  # fmt: skip
    """Return the columns of the tokens of one stream."""
    special = [looks_special(text) for text in texts]
    none = [-1] * len(texts)
    return {
        "text": list(texts), "id": [numbers[text] for text in texts], "special": special,
        "start": none, "end": none, "segment": [int(0 <= boundary <= i) for i in range(len(texts))],
        "word": words(texts, special), "row": none, "column": none,
    }  # fmt: skip


def _numbers(inputs: Sequence[GivenInput]) -> dict[str, int]:
    """Number the texts of all tokens: what repeats must be known, and no tokenizer says its id."""
    texts = (text for one in inputs for stream in one.streams.values() for text in stream)
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


def _check_texts(given: GivenAtlas) -> None:
    """Refuse texts that no table can hold: half of a character."""
    for number, one in enumerate(given.inputs):
        for texts in one.streams.values():
            wrong = next((text for text in texts if not can_be_written(text)), None)
            if wrong is not None:
                raise InputError(
                    f"token {ascii(wrong)[:40]} of input {number} is no whole text; give tokens as "
                    "the tokenizer writes them"
                )
