"""How are the vectors of some inputs stored in one safetensors file?

For each tower and layer (for example `encoder.L3`):

    encoder.L3.query   (H, n, D)   all queries of the shard's inputs, input by input
    encoder.L3.key     (G, m, D)   G groups; head h reads group h // (H / G)
    encoder.L3.value   (G, m, E)
    encoder.L3.lse     (H, n)      float32, log-sum-exp of the logits of each query, as the model
                                   had them: natural logarithm, with scale, soft cap, bias, mask
                                   and sink; log m for a query that sees no key. A weight is
                                   exp(logit − lse). Absent where it was not to be had
    encoder.L3.blocks  (B, 7)      one row per softmax: input, n, m, low, high, mask, bias
    encoder.L3.sink    (H,)        where the layer has sinks
    encoder.L3.weights (H, Σ n·m)  only if weights were asked for, or the model gives nothing else

    final.scale        (Σ n,)      the scale of the final norm, of every token that the logits are
                                   read from, where there are logits
    final.inputs       (I, 2)      input and number of tokens, in the order of final.scale

and, shared by all layers and each stored once, `mask.0`, `mask.1`… (bits) and `bias.0.columns`,
`bias.1.offsets`, `bias.2.dense`…, to which the block rows refer by number (−1: none).
An input is one block, except where a model cuts it into windows or images.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.files import Array
from attention_atlas.store.form import Form, Ints
from attention_atlas.store.tensor_file import EVERY, TensorFile, TensorKind, runs


@dataclass(frozen=True)
class Block:
    """One softmax: n queries of an input that look at m of its keys."""

    input: int
    n: int
    m: int
    form: Form


@dataclass
class Packer:
    """The masks and biases of a shard, each kept once."""

    tensors: dict[str, Array] = field(default_factory=dict)
    _known: dict[tuple[str, tuple[int, ...], bytes], int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def blocks(self, blocks: list[Block]) -> npt.NDArray[np.int32]:
        """Add the masks and biases of some blocks; return the rows of the blocks, (B, 7)."""
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


class ShardFile(TensorFile):
    """One file of vectors, compared with its checksum, if there is one, when it is opened.

    held  keep all of it in memory: it is read once for the checksum and for its tensors
    """

    def __init__(self, path: Path, size: int, checksum: str | None, held: bool = False):
        if not files.is_file(path):
            raise StoreError(f"{path} is missing; the atlas is damaged, capture it again")
        super().__init__(path)
        if self.size != size:
            raise StoreError(
                f"{path} is damaged: it has {self.size} bytes instead of {size}; capture it again"
            )
        if checksum and held:
            self.hold(checksum)
        elif checksum:
            self.verify(checksum)


class HeldTensors:
    """The tensors of a shard, each read entirely on first use and then kept in memory."""

    def __init__(self, get: Callable[[str], Array], names: set[str]):
        self._get, self.names = get, names
        self._held: dict[str, Array] = {}

    def tensor(self, name: str) -> Array:
        """Read a tensor as it is stored, entirely."""
        if name not in self._held:
            self._held[name] = self._get(name)
        return self._held[name]

    def part(self, name: str, first: Ints, second: Ints | slice = EVERY) -> Array:
        """Return a tensor at indexes of its first and second axis."""
        return part(self.tensor(name), first, second)

    def fill(self, name: str, first: Ints, second: Ints, target: Array) -> None:
        """Copy a tensor at indexes of its first two axes into an array of their shape."""
        target[:] = self.part(name, first, second)

    def kind(self, name: str) -> TensorKind:
        """Return the shape and the type of a tensor."""
        tensor = self.tensor(name)
        return TensorKind(tensor.shape, tensor.dtype)

    def length(self, name: str) -> int:
        """Return how many entries the first axis of a tensor has."""
        return len(self.tensor(name))


def part(tensor: Any, first: Ints, second: Ints | slice) -> Array:
    """Read a tensor at indexes of its first and second axis, one run of neighbours at a time."""
    columns = [second] if isinstance(second, slice) else runs(second)
    rows = [[tensor[run, column_run] for column_run in columns] for run in runs(first)]
    if len(rows) == 1 and len(rows[0]) == 1:
        return cast(Array, rows[0][0])  # as it is: a capture's may be on a GPU
    joined = [row[0] if len(row) == 1 else np.concatenate(row, axis=1) for row in rows]
    return np.asarray(joined[0] if len(joined) == 1 else np.concatenate(joined))


def unpack_form(
    row: npt.NDArray[np.int32], tensors: ShardFile | HeldTensors, heads: Ints, rows: Ints
) -> Form:
    """Read the form of one block row for some heads and rows, and no other rows."""
    _, _, m, low, high, mask, bias = (int(number) for number in row)
    hidden = None
    if mask >= 0:
        bits = tensors.part(f"mask.{mask}", _own(tensors, f"mask.{mask}", heads), rows)
        hidden = np.unpackbits(bits, axis=-1, count=m).astype(bool)
    if bias < 0:
        return Form(low, high, hidden, rows=rows)
    kind = next(k for k in ("columns", "offsets", "dense") if f"bias.{bias}.{k}" in tensors.names)
    name = f"bias.{bias}.{kind}"
    values = tensors.part(name, _own(tensors, name, heads), rows if kind == "dense" else EVERY)
    return Form(low, high, hidden, kind, values, rows)


def _own(tensors: ShardFile | HeldTensors, name: str, heads: Ints) -> Ints:
    """Return the indexes of the heads in a tensor; a single entry serves all heads."""
    return np.zeros(1, np.intp) if tensors.length(name) == 1 else heads
