"""What is in an atlas, and which attention does it hold?

Opening reads the manifest only. Vectors are memory-mapped and read a head at a time; weights are
recomputed when asked for, whole or by rows, with mask, bias, soft cap and sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from safetensors import SafetensorError, safe_open

from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.names.head import Head
from attention_atlas.store import files, softmax
from attention_atlas.store.files import Array
from attention_atlas.store.form import Form
from attention_atlas.store.labels import read_labels
from attention_atlas.store.manifest import NAME, Layer, Manifest, Receipt, Tower
from attention_atlas.store.relations import read_relations
from attention_atlas.store.scores import Scores, read_scores
from attention_atlas.store.shard import unpack_form
from attention_atlas.store.write import JOURNAL, is_whole

Float32 = npt.NDArray[np.float32]


class Shard:
    """One safetensors file, checked against its checksum on first use, where there is one."""

    def __init__(self, path: Path, size: int, checksum: str | None):
        self.path = path
        if not path.is_file():
            raise StoreError(f"{path} is missing; the atlas is damaged, capture it again")
        if path.stat().st_size != size or (checksum and files.checksum(path) != checksum):
            raise StoreError(f"{path} is damaged: its checksum does not match; capture it again")
        try:
            self._file = _safetensors(path)
        except SafetensorError as problem:
            raise StoreError(f"{path} is damaged: {problem}") from problem
        self.names = set(self._file.keys())

    def tensor(self, name: str) -> Array:
        return np.asarray(self._file.get_tensor(name))

    def part(self, name: str, first: int, start: int = 0, stop: int | None = None) -> Array:
        """Tensor `name` at one index of its first axis and a range of its second."""
        rows: Array = self._file.get_slice(name)[first : first + 1, start:stop]
        return np.asarray(rows[0])


def _safetensors(path: Path) -> Any:
    return safe_open(path, framework="numpy")


@dataclass(frozen=True)
class Terms:
    """What stands beside q·k in one head's softmax."""

    scale: float
    softcap: float | None
    sink: float | None
    seen: npt.NDArray[np.bool_]  # (N, M)
    added: Float32 | None  # (N, M), after the soft cap


class StoredAtlas:
    """One model over some inputs, stored in a folder: all that can be read from it."""

    def __init__(self, path: Path, manifest: Manifest, just_written: bool = False):
        self.path = path
        self.manifest = manifest
        self._just_written = just_written  # by this very run, so that checksums need no look
        self._shards: dict[int, Shard] = {}
        self._firsts = np.cumsum([0, *(shard.inputs for shard in manifest.shards)])

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the atlas in a folder; refuses one that is unfinished, damaged or newer."""
        path = Path(folder)
        if is_whole(path):
            return cls(path, Manifest.read(path))
        if (path / JOURNAL).exists():
            raise StoreError(
                f"{path} is not finished; run the command that began it again and it goes on"
            )
        if not path.exists():
            raise StoreError(f"there is no atlas at {path}")
        raise StoreError(f"{path} is not an atlas: it has no {NAME}")

    def __repr__(self) -> str:
        heads = sum(layer.heads for tower in self.towers for layer in tower.layers)
        return (
            f"<Atlas of {self.manifest.model}: {self.manifest.inputs} inputs, "
            f"{self.manifest.tokens} tokens, {heads} heads, at {self.path}>"
        )

    def __len__(self) -> int:
        return self.manifest.inputs

    @property
    def towers(self) -> tuple[Tower, ...]:
        return self.manifest.towers

    @property
    def receipt(self) -> Receipt:
        return self.manifest.receipt

    # What there is -------------------------------------------------------------------------

    @cached_property
    def _tokens(self) -> pd.DataFrame:
        frame = self._table("tokens.parquet")
        labels = read_labels(self.path, self.manifest)
        return frame if labels is None else frame.assign(label=labels.to_numpy())

    @cached_property
    def _inputs(self) -> pd.DataFrame:
        return self._table("inputs.parquet")

    def _table(self, name: str) -> pd.DataFrame:
        path = self.path / name
        if not path.is_file() or files.checksum(path) != self.manifest.tables[name]:
            raise StoreError(f"{path} is missing or damaged; capture the atlas again")
        frame: pd.DataFrame = files.read_table(path).to_pandas()
        return frame

    def inputs(self) -> pd.DataFrame:
        """A row an input: kind, text, second text, source file and the person's own columns."""
        return self._inputs

    def tokens(self, input: int | None = None, stream: str | None = None) -> pd.DataFrame:
        """A row a token, of one input or of all, of one stream or of all."""
        frame = self._tokens
        if input is not None:
            frame = frame[frame["input"] == self._check_input(input)]
        if stream is not None:
            if stream not in self.manifest.streams:
                raise PickError(f"no stream is named {stream!r}; there are {self._say_streams()}")
            frame = frame[frame["stream"] == stream]
        return frame

    def picture(self, input: int, image: int = 0) -> Path:
        """The file of one picture of an input."""
        names = list(self.inputs()["images"].iloc[self._check_input(input)])
        if not 0 <= image < len(names):
            there = f"0 to {len(names) - 1}" if names else "none"
            raise PickError(f"input {input} has no picture {image}; there is {there}")
        path: Path = (self.path / names[image]).resolve()
        if not path.is_relative_to(self.path.resolve()) or not path.is_file():
            raise StoreError(f"{names[image]} is missing from {self.path}; capture it again")
        return path

    def heads(self) -> pd.DataFrame:
        """A row a head: where it sits, its group, its receipt; its kind and scores if measured."""
        receipts = {(one.tower, one.layer): asdict(one) for one in self.receipt.layers}
        rows = [
            {
                "head": str(Head(self._prefix(tower), layer.layer, head)),
                "tower": tower.name,
                "role": tower.role,
                "layer": layer.layer,
                "number": head,
                "group": head // (layer.heads // layer.groups),
                "width": layer.width,
                "weights_error": receipts[tower.name, layer.layer]["weights_error"],
                "stored_error": receipts[tower.name, layer.layer]["stored_error"],
            }
            for tower in self.towers
            for layer in tower.layers
            for head in range(layer.heads)
        ]
        return self._with_scores(pd.DataFrame(rows))

    def _with_scores(self, heads: pd.DataFrame) -> pd.DataFrame:
        scores = self.scores()
        if scores is None:
            return heads
        kinds = scores.kinds[["head", "kind", "margin", "agree", "detail", "with_sink",
                              "without_sink", "sink"]]  # fmt: skip
        values = scores.table.pivot(index="head", columns="measure", values="value")
        values = values[[name for name in scores.measures if name in values.columns]]
        return heads.merge(kinds, on="head", how="left").merge(values, on="head", how="left")

    def scores(self) -> Scores | None:
        """Every score with its interval, count and chance; None where nothing was measured yet."""
        return read_scores(self.path, self.manifest)

    def relations(self) -> pd.DataFrame | None:
        """Agreement with given trees by head, relation and way; None where none were given."""
        return read_relations(self.path, self.manifest)

    # What attention it holds -----------------------------------------------------------------

    def weights(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> Float32:
        """(N, M) float32: how much each token looks at each, for all rows or some."""
        tower, layer, number = self._find(head)
        return np.asarray(self._weights(input, tower, layer, number, rows)[0])

    def layer_weights(self, input: int = 0, layer: int = 0, tower: str | None = None) -> Float32:
        """(H, N, M) float32: the weights of all heads of a layer."""
        where = self._tower(tower or "")
        return self._weights(input, where, self._layer(where, layer), None, None)

    def queries(self, head: str | Head, input: int | None = None) -> Float32:
        """(N, D): the queries of a head, of one input or of all inputs in token order."""
        tower, layer, number = self._find(head)
        return self._vectors("query", tower, layer, number, input)

    def keys(self, head: str | Head, input: int | None = None) -> Float32:
        """(M, D): the keys that a head reads; heads of one group read the same."""
        tower, layer, number = self._find(head)
        return self._vectors("key", tower, layer, number * layer.groups // layer.heads, input)

    def values(self, head: str | Head, input: int | None = None) -> Float32:
        """(M, E): the values that a head moves."""
        tower, layer, number = self._find(head)
        return self._vectors("value", tower, layer, number * layer.groups // layer.heads, input)

    def terms(self, head: str | Head, input: int = 0) -> Terms:
        """Scale, soft cap, sink, mask and bias of a head."""
        tower, layer, number = self._find(head)
        shard, stem = self._shard_of(input), f"{tower.name}.L{layer.layer}"
        table, _ = self._blocks(shard, stem, input)
        seen = np.zeros((int(table[:, 1].sum()), int(table[:, 2].sum())), bool)
        added = np.zeros(seen.shape, np.float32)
        n0 = m0 = 0
        for row in table:
            n, m = int(row[1]), int(row[2])
            form = self._form(shard, row, range(number, number + 1))
            here = slice(n0, n0 + n), slice(m0, m0 + m)
            seen[here] = form.visible(n, m)[0]
            bias = form.added(n, m)
            added[here] = 0 if bias is None else bias[0]
            n0, m0 = n0 + n, m0 + m
        sink = float(shard.tensor(f"{stem}.sink")[number]) if layer.sink else None
        return Terms(layer.scale, layer.softcap, sink, seen, added if added.any() else None)

    def has(self, what: str, layer: int = 0, tower: str | None = None) -> bool:
        """Whether the "query", "key", "value" or "weights" of a layer are stored."""
        where = self._tower(tower or "")
        return f"{where.name}.L{layer}.{what}" in self.shard(0).names

    # How it is read ----------------------------------------------------------------------------

    def _weights(
        self,
        input: int,
        tower: Tower,
        layer: Layer,
        head: int | None,
        rows: Sequence[int] | None,
    ) -> Float32:
        shard, stem = self._shard_of(input), f"{tower.name}.L{layer.layer}"
        table, before = self._blocks(shard, stem, input)
        total_n, total_m = int(table[:, 1].sum()), int(table[:, 2].sum())
        wanted = self._check_rows(rows, total_n)
        heads = range(layer.heads) if head is None else range(head, head + 1)
        out = np.zeros((len(heads), len(wanted), total_m), np.float32)
        n0 = m0 = 0
        for row in table:
            n, m = int(row[1]), int(row[2])
            here = (wanted >= n0) & (wanted < n0 + n)
            if here.any():
                local = wanted[here] - n0
                read = self._reader(shard, stem, layer, heads, before, (n0, m0), (n, m))
                out[:, here, m0 : m0 + m] = read(local, row)
            n0, m0 = n0 + n, m0 + m
            before = (before[0], before[1], before[2] + n * m)
        return out

    def _reader(
        self,
        shard: Shard,
        stem: str,
        layer: Layer,
        heads: range,
        before: tuple[int, int, int],
        inside: tuple[int, int],
        size: tuple[int, int],
    ) -> Callable[[npt.NDArray[np.intp], npt.NDArray[np.int32]], Float32]:
        """Rows of one block: stored weights where there are any, else recomputed ones."""
        n, m = size
        q0, k0, w0 = before[0] + inside[0], before[1] + inside[1], before[2]
        if f"{stem}.weights" in shard.names:

            def stored(local: npt.NDArray[np.intp], row: npt.NDArray[np.int32]) -> Float32:
                flat = [shard.part(f"{stem}.weights", h, w0, w0 + n * m) for h in heads]
                return np.stack(flat).reshape(len(heads), n, m)[:, local].astype(np.float32)

            return stored
        self._need(shard, f"{stem}.query", "queries")
        self._need(shard, f"{stem}.key", "keys")
        group = layer.heads // layer.groups
        sink = shard.tensor(f"{stem}.sink")[heads.start : heads.stop] if layer.sink else None

        def recomputed(local: npt.NDArray[np.intp], row: npt.NDArray[np.int32]) -> Float32:
            query = np.stack([shard.part(f"{stem}.query", h, q0, q0 + n)[local] for h in heads])
            key = np.stack([shard.part(f"{stem}.key", h // group, k0, k0 + m) for h in heads])
            form = self._form(shard, row, heads)
            return softmax.weights(
                query, key, scale=layer.scale, softcap=layer.softcap, sink=sink, form=form,
                rows=local, n=n,
            )  # fmt: skip

        return recomputed

    def _form(self, shard: Shard, row: npt.NDArray[np.int32], heads: range) -> Form:
        return unpack_form(row, shard.tensor, shard.names).of(heads)

    def _vectors(
        self, what: str, tower: Tower, layer: Layer, index: int, input: int | None
    ) -> Float32:
        stem = f"{tower.name}.L{layer.layer}"
        numbers = range(len(self._firsts) - 1) if input is None else [self._shard_number(input)]
        pieces = []
        for number in numbers:
            shard = self.shard(number)
            self._need(shard, f"{stem}.{what}", {"query": "queries"}.get(what, what + "s"))
            span: tuple[int, int] | tuple[()] = ()
            if input is not None:
                table, before = self._blocks(shard, stem, input)
                axis = 0 if what == "query" else 1
                span = (before[axis], before[axis] + int(table[:, axis + 1].sum()))
            pieces.append(shard.part(f"{stem}.{what}", index, *span).astype(np.float32))
        return np.concatenate(pieces)

    def _blocks(
        self, shard: Shard, stem: str, input: int
    ) -> tuple[npt.NDArray[np.int32], tuple[int, int, int]]:
        """The block rows of an input, and how many queries, keys and pairs stand before them."""
        table = shard.tensor(f"{stem}.blocks")
        mine = table[:, 0] == input
        earlier = table[table[:, 0] < input].astype(np.int64)
        pairs = int((earlier[:, 1] * earlier[:, 2]).sum())
        return table[mine], (int(earlier[:, 1].sum()), int(earlier[:, 2].sum()), pairs)

    def _need(self, shard: Shard, name: str, what: str) -> None:
        if name not in shard.names:
            kept = ", ".join(self.manifest.keep) or "none"
            raise StoreError(
                f"{self.path.name} was captured without {what} (kept: {kept}); "
                "capture it again with them"
            )

    # How things are found ------------------------------------------------------------------------

    def _shard_of(self, input: int) -> Shard:
        return self.shard(self._shard_number(input))

    def _shard_number(self, input: int) -> int:
        return int(np.searchsorted(self._firsts, self._check_input(input), side="right")) - 1

    def shard(self, number: int) -> Shard:
        """One file of vectors, checked on first use."""
        if number not in self._shards:
            about = self.manifest.shards[number]
            checksum = None if self._just_written else about.checksum
            self._shards[number] = Shard(self.path / about.file, about.bytes, checksum)
        return self._shards[number]

    def _find(self, name: str | Head) -> tuple[Tower, Layer, int]:
        head = Head.parse(name)
        tower = self._tower(head.tower)
        layer = self._layer(tower, head.layer)
        if head.head >= layer.heads:
            raise PickError(
                f"there is no {head}: layer {head.layer} has heads 0 to {layer.heads - 1}"
            )
        return tower, layer, head.head

    def _tower(self, name: str) -> Tower:
        if not name and len(self.towers) == 1:
            return self.towers[0]
        found = next((tower for tower in self.towers if tower.name == name), None)
        if found is None:
            names = ", ".join(tower.name for tower in self.towers)
            asked = f"no tower is named {name!r}" if name else "this model has several towers"
            raise PickError(f"{asked}; name one of {names}, as in {self.towers[0].name}.L0H0")
        return found

    def _layer(self, tower: Tower, number: int) -> Layer:
        layer = tower.find(number)
        if layer is not None:
            return layer
        lost = [
            one for one in self.receipt.layers if (one.tower, one.layer) == (tower.name, number)
        ]
        if lost:
            raise PickError(f"layer {number} of {tower.name} is not shown: {lost[0].reason}")
        if number < tower.depth:
            raise PickError(f"layer {number} of {tower.name} has no attention")
        raise PickError(f"{tower.name} has layers 0 to {tower.depth - 1}, not {number}")

    def _prefix(self, tower: Tower) -> str:
        return tower.name if len(self.towers) > 1 else ""

    def _check_input(self, input: int) -> int:
        if not 0 <= input < len(self):
            raise PickError(f"there is no input {input}; this atlas has 0 to {len(self) - 1}")
        return input

    @staticmethod
    def _check_rows(rows: Sequence[int] | None, n: int) -> npt.NDArray[np.intp]:
        if rows is None:
            return np.arange(n)
        wanted = np.asarray(rows, dtype=np.intp).reshape(-1)
        if wanted.size and (wanted.min() < -n or wanted.max() >= n):
            raise PickError(f"rows go from 0 to {n - 1}; asked for {wanted.tolist()}")
        return wanted % n

    def _say_streams(self) -> str:
        return ", ".join(self.manifest.streams)
