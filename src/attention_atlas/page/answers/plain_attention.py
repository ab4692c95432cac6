"""Plain attention tensors, seen the way an atlas is.

Takes what models return and BertViz takes: a tuple of (1, H, N, M) a layer, or one stacked
(L, H, N, M), of torch or NumPy. torch is not imported: a tensor is whatever can be detached.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.head import Head
from attention_atlas.names.token_text import words
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.rows import Float32, indexes

# Without a tokenizer only the spelling tells: [CLS], <s>, </s>, <|endoftext|>, <extra_id_0>.
_SPECIAL = re.compile(
    r"\[[A-Z]+\d*\]|<\|[^|<>]+\|>|</?(?:s|pad|unk|mask|bos|eos|cls|sep)>|<extra_id_\d+>"
)
_SLACK = 1e-3  # how far from one a row may sum in half precision without being told of


@dataclass(frozen=True)
class GivenTower:
    """One tower of plain attention: its layers, and the tokens on both sides."""

    name: str
    attention: Any
    queries: str  # stream names
    keys: str
    layers: Sequence[int] | None = None  # which layers to keep; None: all


@dataclass
class Attention:
    """Attention of one input as arrays, with the methods of an Atlas that a view needs."""

    towers: tuple[Tower, ...]
    streams: dict[str, list[str]]
    arrays: dict[tuple[str, int], Float32]  # (tower, layer) → (H, N, M)
    boundary: int = -1
    prettify: bool = True
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return 1

    def inputs(self) -> pd.DataFrame:
        first = next(iter(self.streams.values()))
        row = {"kind": "attention", "text": " ".join(first), "second": None}
        return pd.DataFrame([{**row, "boundary": self.boundary, "prompt": -1}])

    def tokens(self, input: int = 0, stream: str | None = None) -> pd.DataFrame:
        self._check_input(input)
        names = list(self.streams) if stream is None else [stream]
        return pd.concat([self._stream(name) for name in names], ignore_index=True)

    def _stream(self, name: str) -> pd.DataFrame:
        raw = self.streams[name]
        special = [_SPECIAL.fullmatch(text) is not None for text in raw]
        nothing = dict.fromkeys(("id", "row", "column"), -1)
        return pd.DataFrame(
            {
                "input": 0,
                "stream": name,
                "position": range(len(raw)),
                "text": raw,
                "special": special,
                "segment": [int(0 <= self.boundary <= i) for i in range(len(raw))],
                "word": words(raw, special),
                **nothing,
            }
        )

    def shape(self, input: int, layer: int, tower: str | None = None) -> tuple[int, int, int]:
        """Returns how many heads, rows and columns a layer has."""
        heads, n, m = self.layer_weights(input, layer, tower).shape
        return heads, n, m

    def rows(
        self,
        input: int,
        layer: int,
        tower: str | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        columns: Sequence[int] | None = None,
    ) -> Float32:
        """Returns weights (H, R, C) of some heads, rows and columns; None stands for all."""
        whole = self.layer_weights(input, layer, tower)
        asked = zip((heads, rows, columns), whole.shape, ("heads", "rows", "columns"), strict=True)
        return whole[np.ix_(*(indexes(*one) for one in asked))]

    def layer_weights(self, input: int = 0, layer: int = 0, tower: str | None = None) -> Float32:
        """Returns the weights (H, N, M) of all heads of a layer, as they were given."""
        self._check_input(input)
        found = self._tower(tower or "")
        if found.find(layer) is None:
            there = ", ".join(str(one.layer) for one in found.layers)
            raise PickError(f"{found.name} has no layer {layer}; it has {there}")
        return self.arrays[found.name, layer]

    def weights(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> Float32:
        """Returns the weights (N, M) of one head, of all rows or of some."""
        asked = Head.parse(head)
        heads, *_ = self.shape(input, asked.layer, asked.tower)
        if asked.head >= heads:
            raise PickError(f"there is no {asked}: layer {asked.layer} has heads 0 to {heads - 1}")
        return np.asarray(self.rows(input, asked.layer, asked.tower, [asked.head], rows)[0])

    def _tower(self, name: str) -> Tower:
        if not name and len(self.towers) == 1:
            return self.towers[0]
        found = next((tower for tower in self.towers if tower.name == name), None)
        if found is None:
            there = ", ".join(tower.name for tower in self.towers)
            raise PickError(f"no tower is named {name!r}; there is {there}")
        return found

    def _check_input(self, input: int) -> None:
        if input != 0:
            raise PickError(f"there is no input {input}; plain attention has input 0 only")


def make(
    parts: Sequence[GivenTower],
    streams: dict[str, Sequence[str]],
    boundary: int | None = None,
    prettify: bool = True,
) -> Attention:
    """One object of all towers; refuses what does not fit together."""
    tokens = {name: [str(one) for one in texts] for name, texts in streams.items()}
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
    """Layer number → (H, N, M)."""
    try:
        given = list(part.attention)
    except TypeError as error:
        raise InputError(
            f"{part.name} attention is a {type(part.attention).__name__}; give a tuple of "
            "(1, H, N, N) arrays, one a layer, as in outputs.attentions"
        ) from error
    if not given:
        raise InputError(
            f"{part.name} attention is empty; transformers 5 puts other things last, so give "
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
            "give (1, H, N, M) or (H, N, M) a layer"
        )
    return np.ascontiguousarray(array, dtype=np.float32)


def as_array(given: Any) -> npt.NDArray[Any]:
    """NumPy from NumPy, or from a tensor on any device and in any precision."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().float().numpy()
    try:
        array = np.asarray(given)
        return array if array.dtype.kind == "f" else array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"a {type(given).__name__} cannot be read as numbers") from error


def _check_layer(
    layer: Float32, number: int, part: GivenTower, tokens: dict[str, list[str]]
) -> None:
    where = f"layer {number} of {part.name} attention"
    _, n, m = layer.shape
    for count, stream, side in ((n, part.queries, "rows"), (m, part.keys, "columns")):
        if count != len(tokens[stream]):
            raise InputError(
                f"{where} has {count} {side} and there are {len(tokens[stream])} {stream} tokens; "
                "give the tokens that the model read, special ones too"
            )
    if np.isnan(layer).any():
        head, row, _ = np.argwhere(np.isnan(layer))[0]
        raise InputError(
            f"{where} holds NaN, first in head {head}, row {row}; look for a row that is "
            "masked altogether, or run the model in float32"
        )
    low, high = float(layer.min()), float(layer.max())
    if low < 0 or high > 1 + _SLACK:
        raise InputError(
            f"{where} goes from {low:.3g} to {high:.3g}; give weights after the softmax, "
            "between 0 and 1"
        )


def _uneven(layers: dict[int, Float32]) -> str:
    sums = [layer.sum(axis=-1) for layer in layers.values()]
    low, high = min(float(s.min()) for s in sums), max(float(s.max()) for s in sums)
    if low >= 1 - _SLACK and high <= 1 + _SLACK:
        return ""
    if high <= 1 + _SLACK:
        return f"some rows sum to less than one (from {low:.3g}): a sink or a mask took the rest"
    return f"rows sum to {low:.3g} up to {high:.3g}, not to one"


def _tower(part: GivenTower, layers: dict[int, Float32]) -> Tower:
    crosses = part.queries != part.keys
    square = all(one.shape[1] == one.shape[2] for one in layers.values())
    causal = square and not crosses and all(_is_causal(one) for one in layers.values())
    return Tower(
        part.name,
        "cross" if crosses else "causal" if causal else "self",
        1 + max(layers),
        tuple(
            Layer(
                layer=number, heads=len(one), groups=len(one), width=0, value_width=0, scale=1.0,
                softcap=None, sink=False, queries=part.queries, keys=part.keys, module="",
            )
            for number, one in layers.items()
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
