"""docs/format.md is enough to write a reader: this one uses nothing of ours."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import (
    BloomConfig,
    BloomModel,
    GptOssConfig,
    GptOssModel,
    MistralConfig,
    MistralModel,
    T5Config,
    T5Model,
)

import attention_atlas as aa
from tests.tolerance import STORED

Floats = np.ndarray[Any, np.dtype[np.float64]]
KINDS = {"F16": "<f2", "F32": "<f4", "I32": "<i4", "U8": "u1"}
UNBOUNDED = 2147483647


def read_safetensors(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, about in header.items():
        start, stop = about["data_offsets"]
        flat = np.frombuffer(data[8 + size + start : 8 + size + stop], KINDS[about["dtype"]])
        tensors[name] = flat.reshape(about["shape"])
    return tensors


def read_weights(folder: Path, number: int, tower: str, layer: int, head: int) -> Floats:
    """By the book: docs/format.md."""
    manifest = json.loads((folder / "atlas.json").read_text())
    assert manifest["format"] == 2
    (about,) = [
        one
        for t in manifest["towers"]
        if t["name"] == tower
        for one in t["layers"]
        if one["layer"] == layer
    ]
    for shard in manifest["shards"]:
        tensors = read_safetensors(folder / shard["file"])
        stem = f"{tower}.L{layer}."
        q0 = k0 = 0
        for block in tensors[stem + "blocks"]:
            which, n, m, low, high, mask, bias = (int(x) for x in block)
            if which == number:
                query = tensors[stem + "query"][head, q0 : q0 + n].astype(float)
                group = head // (about["heads"] // about["groups"])
                key = tensors[stem + "key"][group, k0 : k0 + m].astype(float)
                logits = about["scale"] * query @ key.T
                if about["softcap"]:
                    logits = about["softcap"] * np.tanh(logits / about["softcap"])
                i, j = np.indices((n, m))
                seen = (i - j >= low) & (i - j <= high)
                if mask >= 0:
                    bits = np.unpackbits(tensors[f"mask.{mask}"], axis=-1)[..., :m]
                    seen &= bits[head % len(bits)] == 0
                for kind in ("columns", "offsets", "dense"):
                    added = tensors.get(f"bias.{bias}.{kind}")
                    if added is not None:
                        mine = added[head % len(added)].astype(float)
                        where = {"columns": (j,), "offsets": (i - j + m - 1,), "dense": (i, j)}
                        logits = logits + mine[where[kind]]
                grown = np.where(seen, np.exp(logits - logits.max()), 0)
                total = grown.sum(-1, keepdims=True)
                if about["sink"]:
                    total = total + np.exp(tensors[stem + "sink"][head] - logits.max())
                return np.asarray(grown / total)
            q0, k0 = q0 + n, k0 + m
    raise AssertionError(f"input {number} is in no shard")


SMALL: dict[str, Any] = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 64,
}  # fmt: skip
MODELS = {
    "window": lambda: MistralModel(MistralConfig(**SMALL, sliding_window=4)),
    "sink": lambda: GptOssModel(
        GptOssConfig(**SMALL, head_dim=8, num_local_experts=4, sliding_window=4)
    ),
    "columns": lambda: BloomModel(BloomConfig(vocab_size=99, hidden_size=32, n_layer=2, n_head=4)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_reader_written_from_the_document_finds_the_models_own_weights(
    name: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2 if weight.dim() > 1 else 0.5)
    ids = [torch.randint(5, 99, (1, n)) for n in (9, 6)]
    inputs: list[Any] = [{"input_ids": one} for one in ids]
    aa.capture(model, inputs, path=tmp_path / "x.atlas", progress=False)
    model.set_attn_implementation("eager")
    for number, one in enumerate(ids):
        with torch.no_grad():
            own = model(input_ids=one, output_attentions=True).attentions
        for layer in range(2):
            for head in range(4):
                read = read_weights(tmp_path / "x.atlas", number, "decoder", layer, head)
                np.testing.assert_allclose(read, own[layer][0, head].numpy(), atol=STORED)


def test_the_reader_reads_an_encoder_decoder_with_offset_biases(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = T5Model(T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    given = {
        "input_ids": torch.tensor([[5, 9, 30, 7, 8]]),
        "decoder_input_ids": torch.tensor([[0, 4, 6]]),
    }
    inputs: list[Any] = [given]
    aa.capture(model.eval(), inputs, path=tmp_path / "x.atlas", progress=False)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = model(**given, output_attentions=True)
    for tower, maps in (
        ("encoder", own.encoder_attentions),
        ("decoder", own.decoder_attentions),
        ("cross", own.cross_attentions),
    ):
        for layer, weights in enumerate(maps):
            for head in range(4):
                read = read_weights(tmp_path / "x.atlas", 0, tower, layer, head)
                np.testing.assert_allclose(read, weights[0, head].numpy(), atol=STORED)


def test_every_token_and_input_is_in_the_tables(tmp_path: Path) -> None:
    aa.capture(
        "builtin:bert", [("A cat.", "A dog."), "One."], path=tmp_path / "x.atlas", progress=False
    )
    inputs = pq.read_table(tmp_path / "x.atlas" / "inputs.parquet").to_pylist()
    tokens = pq.read_table(tmp_path / "x.atlas" / "tokens.parquet").to_pylist()
    assert [row["kind"] for row in inputs] == ["pair", "text"]
    first = [row for row in tokens if row["input"] == 0]
    assert [row["position"] for row in first] == list(range(len(first)))
    assert first[inputs[0]["boundary"]]["segment"] == 1
    text = inputs[0]["text"]
    assert [text[row["start"] : row["end"]] for row in first if row["segment"] == 0] == [
        "A",
        "cat",
        ".",
    ]
