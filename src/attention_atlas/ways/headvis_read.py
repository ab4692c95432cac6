"""How does an export of HeadVis become an atlas?

A head's file holds its own sequences, so the inputs of the atlas are those of all heads together.
Weights that the file leaves out of a sequence are 0. Where a head lacks a sequence all of its
weights are 0: nothing is drawn, and such an atlas is not measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from attention_atlas.atlas import Atlas
from attention_atlas.names.errors import InputError, PickError, StoreError
from attention_atlas.names.head import Head
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.rows import Float32
from attention_atlas.store.shard import Block
from attention_atlas.ways.bertviz import given_receipt
from attention_atlas.ways.given import GivenAtlas, GivenInput, GivenShard, packed, seen_form
from attention_atlas.ways.given import write_given as write
from attention_atlas.ways.headvis_form import (
    HeadVisConfig,
    HeadVisSequence,
    read_config,
    read_head,
    read_scatter,
)

_MOST_BYTES = 2**32  # of weights, which an atlas holds whole
_SHARD_BYTES = 2**27
_SPARSE = "given by HeadVis, which keeps the largest weights of a row; what it left out is 0"
Found = Mapping[tuple[int, int], Mapping[int, HeadVisSequence]]  # (layer, head) → by sequence_id


def from_headvis(
    folder: str | Path,
    *,
    heads: Sequence[str] | None = None,
    limit: int | None = None,
    path: str | Path | None = None,
) -> Atlas:
    """Read a folder of HeadVis' files and return an atlas of its weights.

    folder  holds config.json, scatter_data.json and heads/
    heads   which heads to read, as in ["L5H1"]; None: all
    limit   at most so many sequences, those with the smallest numbers
    path    the folder to write; None: a temporary one, deleted with the atlas

    Metrics of scatter_data.json are kept in atlas.manifest.options["headvis"]["metrics"].
    """
    place = Path(folder)
    config = read_config(place)
    scatter = read_scatter(place, config)
    asked = _asked(config, heads)
    found = {pair: {one.number: one for one in read_head(place, config, *pair)} for pair in asked}
    tokens = _tokens(found, limit)
    counts: dict[int, int] = {}
    for layer, head in asked:
        counts[layer] = max(counts.get(layer, 0), head + 1)
    _check_size(tokens, counts)
    causal = _is_causal(found)
    tower = Tower(
        "decoder", "causal" if causal else "self", config.n_layers,
        tuple(_layer(number, count) for number, count in sorted(counts.items())),
    )  # fmt: skip
    notes = ["what HeadVis left out of a row counts as 0, so rows sum to less than one"]
    missing = _missing(tower, found, tokens)
    holes = {} if not missing else {"holes": missing}
    given = GivenAtlas(
        towers=(tower,),
        inputs=[GivenInput({"text": text}, -1, {"sequence_id": n}) for n, text in tokens.items()],
        receipt=given_receipt([tower], _SPARSE), keep=("weights",), model=config.model,
        made_from="HeadVis' files",
        options={
            "notes": [*notes, *holes.values()],
            **holes,
            "headvis": {"metrics": scatter, "n_heads": config.n_heads},
        },
    )  # fmt: skip
    return write(path, given, _shards(tower, found, tokens))


def _asked(config: HeadVisConfig, heads: Sequence[str] | None) -> list[tuple[int, int]]:
    if heads is None:
        return sorted(config.heads)
    named = [Head.parse(name) for name in heads]
    if not named:
        raise InputError("heads is empty; name at least one, as in heads=['L5H1']")
    unknown = next((one for one in named if (one.layer, one.head) not in config.heads), None)
    if unknown is not None:
        first, last = (f"L{layer}H{head}" for layer, head in (config.heads[0], config.heads[-1]))
        raise PickError(f"the export has no head {unknown}; it has {first} to {last}")
    return sorted({(one.layer, one.head) for one in named})


def _missing(tower: Tower, found: Found, tokens: Mapping[int, Sequence[str]]) -> str:
    """Return a sentence about the heads that lack some of the sequences; "" if none does."""
    of = len(tokens) * sum(layer.heads for layer in tower.layers)
    known = sum(len(tokens.keys() & sequences.keys()) for sequences in found.values())
    if known == of:
        return ""
    return (
        f"the files have the weights of {known} of {of} pairs of head and sequence; the others are "
        "shown as 0 and heads are not measured: use HeadVis' own metrics, or export all sequences "
        "of all heads"
    )


def _tokens(found: Found, limit: int | None) -> dict[int, tuple[str, ...]]:
    """Return the tokens of every sequence of any head, by sequence_id."""
    tokens: dict[int, tuple[str, ...]] = {}
    for (layer, head), sequences in found.items():
        for number, one in sequences.items():
            if tokens.setdefault(number, one.tokens) != one.tokens:
                raise StoreError(
                    f"sequence {number} has other tokens in the file of L{layer}H{head} than in "
                    "another head's; export it again"
                )
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}; ask for at least one sequence")
    kept = sorted(tokens)[:limit]
    if not kept:
        raise StoreError("the export holds no sequences, so there is nothing to show")
    return {number: tokens[number] for number in kept}


def _check_size(tokens: Mapping[int, Sequence[str]], counts: Mapping[int, int]) -> None:
    size = _pairs(tokens.values()) * sum(counts.values()) * 4
    if size > _MOST_BYTES:
        raise InputError(
            f"the weights of {len(tokens)} sequences and {sum(counts.values())} heads take "
            f"{size / 2**30:.0f} GB as an atlas; name some heads, as in heads=['L5H1'], or a limit"
        )


def _pairs(texts: Iterable[Sequence[str]]) -> int:
    return sum(len(text) ** 2 for text in texts)


def _is_causal(found: Found) -> bool:
    """Tell whether no kept weight is on a later token."""
    return all(
        bool((one.indices % len(one.tokens) <= one.indices // len(one.tokens)).all())
        for sequences in found.values()
        for one in sequences.values()
    )


def _layer(number: int, heads: int) -> Layer:
    return Layer(
        layer=number, heads=heads, groups=heads, width=0, value_width=0, scale=1.0, softcap=None,
        sink=False, queries="text", keys="text", module="",
    )  # fmt: skip


def _shards(
    tower: Tower, found: Found, tokens: Mapping[int, Sequence[str]]
) -> Iterator[GivenShard]:  # fmt: skip
    """Yield the weights, some inputs at a time."""
    form = seen_form(tower.role == "causal")
    for inputs in _runs(tower, [len(text) for text in tokens.values()]):
        numbers = list(tokens)[inputs.start : inputs.stop]
        tensors, blocks = {}, {}
        for layer in tower.layers:
            stem = f"{tower.name}.L{layer.layer}"
            dense = [_weights(found, layer, number, len(tokens[number])) for number in numbers]
            tensors[f"{stem}.weights"] = packed(dense)
            sizes = [len(tokens[number]) for number in numbers]
            blocks[stem] = [Block(i, n, n, form) for i, n in zip(inputs, sizes, strict=True)]
        yield GivenShard(inputs, tensors, blocks)


def _weights(found: Found, layer: Layer, number: int, n: int) -> Float32:
    """Return the weights (H, N, N) of a sequence; 0 of heads that lack it."""
    weights = np.zeros((layer.heads, n, n), np.float32)
    for head in range(layer.heads):
        sequence = found.get((layer.layer, head), {}).get(number)
        if sequence is not None:
            weights[head] = sequence.weights()
    return weights


def _runs(tower: Tower, lengths: Sequence[int]) -> Iterator[range]:
    """Yield inputs that follow each other and whose weights fit into one shard."""
    heads = sum(layer.heads for layer in tower.layers)
    start, size = 0, 0
    for i, n in enumerate(lengths):
        more = heads * n * n * 4
        if i > start and size + more > _SHARD_BYTES:
            yield range(start, i)
            start, size = i, 0
        size += more
    yield range(start, len(lengths))
