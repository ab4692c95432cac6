"""How is plain attention shown like an atlas? By the methods of an atlas that a view needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.names.token_text import looks_special, words
from attention_atlas.store.head_weights import GivenWeights
from attention_atlas.store.manifest import Tower
from attention_atlas.store.pyramids import Pyramids, Without, removed
from attention_atlas.store.rows import Float32, indexes
from attention_atlas.store.tiles import Pyramid


@dataclass
class Attention:
    """Attention of one input as arrays, with the methods of an Atlas that a view needs."""

    towers: tuple[Tower, ...]
    streams: dict[str, list[str]]
    arrays: dict[tuple[str, int], Float32]  # (tower, layer) → (H, N, M)
    boundary: int = -1
    prettify: bool = True
    notes: list[str] = field(default_factory=list)
    _pyramids: Pyramids = field(default_factory=Pyramids, repr=False, compare=False)

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
        special = [looks_special(text) for text in raw]
        missing = dict.fromkeys(("id", "row", "column"), -1)
        return pd.DataFrame(
            {
                "input": 0,
                "stream": name,
                "position": range(len(raw)),
                "text": raw,
                "special": special,
                "segment": [int(0 <= self.boundary <= i) for i in range(len(raw))],
                "word": words(raw, special),
                **missing,
            }
        )

    def shape(self, input: int, layer: int, tower: str | None = None) -> tuple[int, int, int]:
        """Return how many heads, rows and columns a layer has."""
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
        """Return the weights (H, N, M) of some heads, rows and columns; None means all."""
        whole = self.layer_weights(input, layer, tower)
        asked = zip((heads, rows, columns), whole.shape, ("heads", "rows", "columns"), strict=True)
        return whole[np.ix_(*(indexes(*axis) for axis in asked))]

    def layer_weights(self, input: int = 0, layer: int = 0, tower: str | None = None) -> Float32:
        """Return the weights (H, N, M) of all heads of a layer, as they were given."""
        self._check_input(input)
        asked = self._tower(tower or "")
        if asked.find(layer) is None:
            known = ", ".join(str(known.layer) for known in asked.layers)
            raise PickError(f"{asked.name} has no layer {layer}; it has {known}")
        return self.arrays[asked.name, layer]

    def weights(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> Float32:
        """Return the weights (N, M) of one head, of all rows or of some."""
        asked = Head.parse(head)
        heads, *_ = self.shape(input, asked.layer, asked.tower)
        if asked.head >= heads:
            raise PickError(f"there is no {asked}: layer {asked.layer} has heads 0 to {heads - 1}")
        return np.asarray(self.rows(input, asked.layer, asked.tower, [asked.head], rows)[0])

    def window(
        self, input: int, layer: int, tower: str | None, rows: range, columns: range,
        heads: Sequence[int] | None = None,
    ) -> Float32:  # fmt: skip
        """Return the weights (H, R, C) of some rows and columns of a layer."""
        return self.rows(input, layer, tower, heads, rows, columns)

    def pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid:
        """Return the levels of tiles of a head."""
        rows = self.weights(input, head)
        keys = removed(without, lambda: self.pyramid(input, head), rows.shape[1])
        make = partial(Pyramid, GivenWeights(rows, keys), keys)
        return self._pyramids.get((str(head), keys), make)

    def _tower(self, name: str) -> Tower:
        if not name and len(self.towers) == 1:
            return self.towers[0]
        match = next((tower for tower in self.towers if tower.name == name), None)
        if match is None:
            known = ", ".join(tower.name for tower in self.towers)
            raise PickError(f"no tower is named {name!r}; there is {known}")
        return match

    def _check_input(self, input: int) -> None:
        if input != 0:
            raise PickError(f"there is no input {input}; plain attention has input 0 only")
