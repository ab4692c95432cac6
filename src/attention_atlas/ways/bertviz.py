"""How do BertViz's tensors become an atlas? Weights alone, without vectors and receipt."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attention_atlas.atlas import Atlas
from attention_atlas.names.arguments import caller
from attention_atlas.names.errors import InputError
from attention_atlas.page.answers.plain_attention import Attention
from attention_atlas.page.hosts.bertviz_arguments import read_subject
from attention_atlas.store.manifest import GIVEN, LayerReceipt, Receipt, Tower
from attention_atlas.store.shard import Block
from attention_atlas.ways.given import (
    GivenAtlas,
    GivenInput,
    GivenShard,
    packed,
    seen_form,
    write_given,
)

NO_MODEL = "given as weights; no model was there to compare them with"


def from_bertviz(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    *,
    path: str | Path | None = None,
    model: str = "given",
) -> Atlas:
    """Make an atlas of attention tensors, with the arguments of BertViz; returns the atlas.

    attention is (1, H, N, N) for each layer, of torch or NumPy. The atlas holds weights alone: it
    has no queries, keys and values, no maps, and its receipt says that nothing was compared.
    path   the folder to write; None: a temporary one, deleted with the atlas
    model  what to call it
    """
    given = {
        "attention": attention, "tokens": tokens, "sentence_b_start": sentence_b_start,
        "prettify_tokens": True, "encoder_attention": encoder_attention,
        "decoder_attention": decoder_attention, "cross_attention": cross_attention,
        "encoder_tokens": encoder_tokens, "decoder_tokens": decoder_tokens,
        "include_layers": include_layers,
    }  # fmt: skip
    subject = read_subject(given, caller())
    if not isinstance(subject, Attention):
        raise InputError("this is an atlas already; give tensors, or use the atlas as it is")
    return _write(subject, path, model)


def given_receipt(towers: Sequence[Tower], reason: str = NO_MODEL) -> Receipt:
    """Return the receipt of weights that were given: nothing was compared with a model."""
    layers = [
        LayerReceipt(tower.name, layer.layer, math.nan, math.nan, None, False, reason)
        for tower in towers
        for layer in tower.layers
    ]
    return Receipt(GIVEN, "float32", math.nan, tuple(layers))


def _write(subject: Attention, path: str | Path | None, model: str) -> Atlas:
    tensors, blocks = {}, {}
    for tower in subject.towers:
        for layer in tower.layers:
            weights = subject.arrays[tower.name, layer.layer]  # (H, N, M)
            stem = f"{tower.name}.L{layer.layer}"
            tensors[f"{stem}.weights"] = packed([weights])
            _, n, m = weights.shape
            blocks[stem] = [Block(0, n, m, seen_form(tower.role == "causal"))]
    given = GivenAtlas(
        towers=subject.towers, inputs=[GivenInput(subject.streams, subject.boundary)],
        receipt=given_receipt(subject.towers), keep=("weights",), model=model,
        made_from="BertViz's tensors", options={"notes": subject.notes},
    )  # fmt: skip
    return write_given(path, given, [GivenShard(range(1), tensors, blocks)])
