"""How is the attention of an edited input read? Like that of an added one, but from memory.

The vectors and masks are those that the edited pass used. Only the latest edited inputs are kept;
their numbers start beyond those of all other inputs and are never given twice, so that a packet
that was kept for one of them stays true.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

from attention_atlas.names.errors import PickError
from attention_atlas.store.files import Array
from attention_atlas.store.manifest import Layer, Shard, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import StoredLayer
from attention_atlas.store.shard import HeldTensors

Layers = Mapping[tuple[str, int], Mapping[str, Array]]

FIRST = 100_000_000  # the number of the first edited input
KEPT = 32  # edited inputs
KEPT_BYTES = 1_000_000_000


def is_edited(input: int) -> bool:
    """Tell whether a number is that of an edited input."""
    return input >= FIRST


class EditedAtlas(StoredAtlas):
    """One input as an edited pass read it; `plain` is the number of the same input without edits.

    layers  by tower and number: the tensors of a shard with this layer and input alone
    """

    def __init__(self, atlas: StoredAtlas, plain: int, layers: Layers):
        manifest = replace(
            atlas.manifest, inputs=1, shards=(Shard("", 1, 0, ""),), keep=("query", "key", "value")
        )
        super().__init__(atlas.path, manifest)
        self.plain, self._tensors = plain, layers
        self.__dict__["_tokens"] = atlas.tokens(plain).assign(input=0)

    def has(self, what: str, layer: int = 0, tower: str | None = None) -> bool:
        """Tell whether the "query", "key", "value" or "weights" of a layer were recorded."""
        name = self._tower(tower or "").name
        return f"{name}.L{layer}.{what}" in self._tensors.get((name, layer), {})

    def _shard_layer(self, number: int, tower: Tower, layer: Layer) -> StoredLayer:
        key = number, tower.name, layer.layer
        if key not in self._layers:
            tensors = self._tensors[tower.name, layer.layer]
            held = HeldTensors(tensors.__getitem__, set(tensors))
            self._layers[key] = StoredLayer(held, tower.name, layer)
        return self._layers[key]

    @property
    def bytes(self) -> int:
        """Get how much memory the tensors take."""
        return sum(
            tensor.nbytes for tensors in self._tensors.values() for tensor in tensors.values()
        )


class EditedInputs:
    """The edited inputs of one atlas, by number; the latest are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, EditedAtlas] = OrderedDict()
        self._next = FIRST
        self._lock = threading.Lock()

    def add(self, edited: EditedAtlas) -> int:
        """Keep an edited input and return its number."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._kept[number] = edited
            while len(self._kept) > 1 and not self._fit():
                self._kept.popitem(last=False)
        return number

    def _fit(self) -> bool:
        total = sum(edited.bytes for edited in self._kept.values())
        return len(self._kept) <= KEPT and total <= KEPT_BYTES

    def get(self, number: int) -> EditedAtlas:
        """Return an edited input; a PickError says that it is no longer kept."""
        with self._lock:
            edited = self._kept.get(number)
        if edited is None:
            raise PickError("this edited input is no longer kept; apply the edits again")
        return edited
