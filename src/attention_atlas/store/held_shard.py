"""How is one shard read as an atlas before it is on disk?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attention_atlas.store.files import Array, Numbers
from attention_atlas.store.manifest import Manifest, Receipt, Shard, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.shard import HeldTensors


class HeldShard(StoredAtlas):
    """The tensors and tokens of one shard in memory, as an atlas; inputs keep their numbers.

    as_they_are  parts of vectors are given as the capture holds them, on a GPU perhaps
    """

    def __init__(
        self, towers: tuple[Tower, ...], tensors: Mapping[str, Numbers], tokens: pa.Table,
        as_they_are: bool = False,
    ):  # fmt: skip
        streams = {
            stream for tower in towers for layer in tower.layers
            for stream in (layer.queries, layer.keys)
        }  # fmt: skip
        super().__init__(Path("shard"), _manifest(towers, tuple(sorted(streams)), tokens))
        self.__dict__["_tokens"] = tokens.to_pandas()

        def read(name: str) -> Array:
            tensor: Any = tensors[name]
            return tensor if as_they_are and hasattr(tensor, "vectors") else np.asarray(tensor)

        self._held = HeldTensors(read, set(tensors))

    def shard(self, number: int) -> HeldTensors:
        """Return the tensors of the shard."""
        return self._held


def _manifest(towers: tuple[Tower, ...], streams: tuple[str, ...], tokens: pa.Table) -> Manifest:
    inputs = len(tokens["input"].unique())
    return Manifest(
        model="", revision=None, model_class="", towers=towers, streams=streams, inputs=inputs,
        tokens=tokens.num_rows, keep=(), receipt=Receipt("", "", 0.0, ()),
        shards=(Shard("", inputs, 0, ""),), tables={},
    )  # fmt: skip
