"""How are plain attention tensors read and checked?

Takes what models return and BertViz takes: one (1, H, N, M) per layer in a tuple, or one stacked
(L, H, N, M), of torch or NumPy. torch is not imported: what has `detach` is a tensor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import InputError
from attention_atlas.page.answers.plain_attention import Attention
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.rows import Float32

_SLACK = 1e-3  # how far from one a row may sum in half precision without a note


@dataclass(frozen=True)
class GivenTower:
    """One tower of plain attention as it was given: its layers, and the tokens on both sides."""

    name: str
    attention: Any
    queries: str  # stream names
    keys: str
    layers: Sequence[int] | None = None  # which layers to keep; None: all


def make_attention(
    parts: Sequence[GivenTower],
    streams: dict[str, Sequence[str]],
    boundary: int | None = None,
    prettify: bool = True,
) -> Attention:
    """Check the towers against their tokens and return them as one Attention."""
    tokens = {name: [str(text) for text in texts] for name, texts in streams.items()}
    arrays: dict[tuple[str, int], Float32] = {}
    towers, notes = [], []
    for part in parts:
        layers = _layers(part)
        for number, layer in layers.items():
            _check_layer(layer, number, part, tokens)
            arrays[part.name, number] = layer
        uneven = _uneven(layers)
        notes += [f"{part.name}: {uneven}"] if uneven else []
        towers.append(_tower(part, layers))
    return Attention(tuple(towers), tokens, arrays, _boundary(boundary, tokens), prettify, notes)


def _layers(part: GivenTower) -> dict[int, Float32]:
    """Return the layers to keep: number → (H, N, M)."""
    try:
        given = list(part.attention)
    except TypeError as error:
        raise InputError(
            f"{part.name} attention is a {type(part.attention).__name__}; give a tuple of "
            "(1, H, N, N) arrays, one per layer, as in outputs.attentions"
        ) from error
    if not given:
        raise InputError(
            f"{part.name} attention is empty; in transformers 5 it is not last in outputs, so give "
            "outputs.attentions instead of outputs[-1], from a model run with output_attentions"
        )
    wanted = range(len(given)) if part.layers is None else list(part.layers)
    beyond = [number for number in wanted if not 0 <= number < len(given)]
    if beyond:
        raise InputError(
            f"include_layers asks for layer {beyond[0]}; {part.name} has 0 to {len(given) - 1}"
        )
    return {number: _layer(given[number], number, part.name) for number in wanted}


def _layer(given: Any, number: int, name: str) -> Float32:
    if given is None:
        raise InputError(
            f"layer {number} of {name} attention is None; load the model with "
            'attn_implementation="eager", or give aa.capture(model, text) instead'
        )
    array = as_array(given)
    if array.ndim == 4 and array.shape[0] > 1:
        raise InputError(
            f"layer {number} of {name} attention is a batch of {array.shape[0]}; give one input, "
            "as in [a[:1] for a in attention]"
        )
    if array.ndim == 4 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 3 or not array.size:
        raise InputError(
            f"layer {number} of {name} attention has shape {array.shape}; "
            "give (1, H, N, M) or (H, N, M) per layer"
        )
    return np.ascontiguousarray(array, dtype=np.float32)


def as_array(given: Any) -> npt.NDArray[Any]:
    """Return NumPy or a tensor, on any device and in any precision, as a NumPy array."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().float().numpy()
    try:
        array = np.asarray(given)
        return array if array.dtype.kind == "f" else array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a {type(given).__name__} cannot be read as numbers; give NumPy arrays or tensors"
        ) from error


def _check_layer(
    layer: Float32, number: int, part: GivenTower, tokens: dict[str, list[str]]
) -> None:
    place = f"layer {number} of {part.name} attention"
    _, n, m = layer.shape
    for count, stream, side in ((n, part.queries, "rows"), (m, part.keys, "columns")):
        if count != len(tokens[stream]):
            raise InputError(
                f"{place} has {count} {side} and there are {len(tokens[stream])} {stream} tokens; "
                "give all tokens that the model read, special ones too"
            )
    if np.isnan(layer).any():
        head, row, _ = np.argwhere(np.isnan(layer))[0]
        raise InputError(
            f"{place} holds NaN, first in head {head}, row {row}; look for a row that is "
            "masked completely, or run the model in float32"
        )
    low, high = float(layer.min()), float(layer.max())
    if low < 0 or high > 1 + _SLACK:
        raise InputError(
            f"{place} goes from {low:.3g} to {high:.3g}; give weights after the softmax, "
            "between 0 and 1"
        )


def _uneven(layers: dict[int, Float32]) -> str:
    """Return a note about rows that do not sum to one; empty if all do."""
    sums = [layer.sum(axis=-1) for layer in layers.values()]
    low, high = min(float(row.min()) for row in sums), max(float(row.max()) for row in sums)
    if low >= 1 - _SLACK and high <= 1 + _SLACK:
        return ""
    if high <= 1 + _SLACK:
        return f"some rows sum to less than one (from {low:.3g}): a sink or a mask took the rest"
    return f"rows sum to {low:.3g} up to {high:.3g}, not to one"


def _tower(part: GivenTower, layers: dict[int, Float32]) -> Tower:
    crosses = part.queries != part.keys
    square = all(weights.shape[1] == weights.shape[2] for weights in layers.values())
    causal = square and not crosses and all(map(_is_causal, layers.values()))
    return Tower(
        part.name,
        "cross" if crosses else "causal" if causal else "self",
        1 + max(layers),
        tuple(
            Layer(
                layer=number, heads=len(weights), groups=len(weights), width=0, value_width=0,
                scale=1.0, softcap=None, sink=False, queries=part.queries, keys=part.keys,
                module="",
            )
            for number, weights in layers.items()
        ),
    )  # fmt: skip


def _is_causal(layer: Float32) -> bool:
    n = layer.shape[1]
    return n > 1 and not layer[:, *np.triu_indices(n, k=1)].any()


def _boundary(asked: int | None, tokens: dict[str, list[str]]) -> int:
    if asked is None:
        return -1
    n = len(next(iter(tokens.values())))
    if not 0 < asked < n:
        raise InputError(
            f"sentence_b_start is {asked}; it is the first token of the second text, 1 to {n - 1}"
        )
    return int(asked)
