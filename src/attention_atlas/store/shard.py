"""How do the vectors of some inputs lie in one safetensors file?

For each tower and layer (`encoder.L3`, say):

    encoder.L3.query   (H, n, D)   all queries of the shard's inputs, one input after the other
    encoder.L3.key     (G, m, D)   G groups; head h reads group h // (H / G)
    encoder.L3.value   (G, m, E)
    encoder.L3.blocks  (B, 7)      one row a softmax problem: input, n, m, low, high, mask, bias
    encoder.L3.sink    (H,)        where the layer has sinks
    encoder.L3.weights (H, Σ n·m)  only where weights were asked for, or nothing else was to be had

and, shared by all layers and told apart by their contents, `mask.0`, `mask.1`… (bits) and
`bias.0.columns`, `bias.1.offsets`, `bias.2.dense`… that the block rows point to (−1: none).
An input is one block, except where a model cuts it into windows or images.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.store.form import Form

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Block:
    """One softmax problem: n queries of an input that look at m keys of it."""

    input: int
    n: int
    m: int
    form: Form


@dataclass
class Packer:
    """Gathers the masks and biases of a shard, each kept once."""

    tensors: dict[str, Array] = field(default_factory=dict)
    _known: dict[tuple[str, tuple[int, ...], bytes], int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def blocks(self, blocks: list[Block]) -> npt.NDArray[np.int32]:
        rows = [
            (
                block.input,
                block.n,
                block.m,
                block.form.low,
                block.form.high,
                self._mask(block.form),
                self._bias(block.form),
            )
            for block in blocks
        ]
        return np.array(rows, dtype=np.int32).reshape(-1, 7)

    def _mask(self, form: Form) -> int:
        if form.hidden is None:
            return -1
        return self._entry("mask", "", np.packbits(form.hidden, axis=-1))

    def _bias(self, form: Form) -> int:
        if form.bias is None:
            return -1
        return self._entry("bias", form.bias_kind, form.bias.astype(np.float32))

    def _entry(self, what: str, kind: str, array: Array) -> int:
        known = (what + kind, array.shape, array.tobytes())
        if known not in self._known:
            number = self._counts.get(what, 0)
            self._counts[what] = number + 1
            self._known[known] = number
            name = f"{what}.{number}.{kind}" if kind else f"{what}.{number}"
            self.tensors[name] = array
        return self._known[known]


def unpack_form(row: npt.NDArray[np.int32], get: Any, names: set[str]) -> Form:
    """The form of one block row; `get` reads a tensor of the shard by name."""
    _, _, m, low, high, mask, bias = (int(number) for number in row)
    hidden = None
    if mask >= 0:
        hidden = np.unpackbits(get(f"mask.{mask}"), axis=-1, count=m).astype(bool)
    if bias < 0:
        return Form(low, high, hidden)
    kind = next(k for k in ("columns", "offsets", "dense") if f"bias.{bias}.{k}" in names)
    return Form(low, high, hidden, kind, get(f"bias.{bias}.{kind}"))
