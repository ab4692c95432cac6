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

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from attention_atlas.names.errors import StoreError
from attention_atlas.store import files
from attention_atlas.store.files import Array
from attention_atlas.store.form import Form, Ints

EVERY = slice(None)


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


class ShardFile:
    """One safetensors file, checked against its checksum on first use, where there is one."""

    def __init__(self, path: Path, size: int, checksum: str | None):
        self.path = path
        if not path.is_file():
            raise StoreError(f"{path} is missing; the atlas is damaged, capture it again")
        if path.stat().st_size != size or (checksum and files.checksum(path) != checksum):
            raise StoreError(f"{path} is damaged: its checksum does not match; capture it again")
        self._file: Any
        try:
            self._file = safe_open(path, framework="numpy")
        except SafetensorError as problem:
            raise StoreError(f"{path} is damaged: {problem}") from problem
        self.names = set(self._file.keys())

    def tensor(self, name: str) -> Array:
        """Returns a tensor as it is stored, whole."""
        return np.asarray(self._file.get_tensor(name))

    def part(self, name: str, first: Ints, second: Ints | slice = EVERY) -> Array:
        """Returns a tensor at indexes of its first and second axis; reads nothing else."""
        return part(self._file.get_slice(name), first, second)

    def length(self, name: str) -> int:
        """Returns how many entries the first axis of a tensor has."""
        return int(self._file.get_slice(name).get_shape()[0])


class HeldTensors:
    """The tensors of a shard, each read whole when first asked for and kept for the next time."""

    def __init__(self, get: Callable[[str], Array], names: set[str]):
        self._get, self.names = get, names
        self._held: dict[str, Array] = {}

    def tensor(self, name: str) -> Array:
        """Returns a tensor as it is stored, whole."""
        if name not in self._held:
            self._held[name] = self._get(name)
        return self._held[name]

    def part(self, name: str, first: Ints, second: Ints | slice = EVERY) -> Array:
        """Returns a tensor at indexes of its first and second axis."""
        return part(self.tensor(name), first, second)

    def length(self, name: str) -> int:
        """Returns how many entries the first axis of a tensor has."""
        return len(self.tensor(name))


def part(tensor: Any, first: Ints, second: Ints | slice) -> Array:
    """Returns what stands at some indexes of the first and second axis, by runs of neighbours."""
    columns = [second] if isinstance(second, slice) else runs(second)
    rows = [[tensor[some, these] for these in columns] for some in runs(first)]
    joined = [row[0] if len(row) == 1 else np.concatenate(row, axis=1) for row in rows]
    return np.asarray(joined[0] if len(joined) == 1 else np.concatenate(joined))


def runs(index: Ints) -> list[slice]:
    """Returns indexes as slices of neighbours: 3 4 5 9 → 3:6, 9:10."""
    if len(index) < 2 or (np.diff(index) == 1).all():
        return [slice(int(index[0]), int(index[-1]) + 1)]
    cuts = np.flatnonzero(np.diff(index) != 1) + 1
    return [slice(int(run[0]), int(run[-1]) + 1) for run in np.split(index, cuts)]


def unpack_form(
    row: npt.NDArray[np.int32], tensors: ShardFile | HeldTensors, heads: Ints, rows: Ints
) -> Form:
    """Returns the form of one block row for some heads and rows; reads no other rows."""
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
    """Returns where the heads stand in a tensor; one entry alone stands for all of them."""
    return np.zeros(1, np.intp) if tensors.length(name) == 1 else heads
