"""What is in an atlas, and which attention does it hold?

Opening reads the manifest only. Vectors are read on demand, never mapped. `rows` recomputes
weights; all other methods that return weights call it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from threading import Lock
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from cachetools import LRUCache

from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.names.head import Head
from attention_atlas.store import files
from attention_atlas.store.attribution import Attribution, LayerAdds, direction, layer_adds
from attention_atlas.store.chosen_token import next_token, number_of
from attention_atlas.store.computed_weights import ComputedWeights
from attention_atlas.store.contributions import CONTRIBUTION, MOVED, value_lengths
from attention_atlas.store.files import Array
from attention_atlas.store.head_shares import HeadShares, LayerGiven
from attention_atlas.store.head_weights import HeadWeights, StoredWeights, window
from attention_atlas.store.labels import read_labels
from attention_atlas.store.manifest import NAME, Layer, Manifest, Receipt, Tower
from attention_atlas.store.map_scores import map_scores
from attention_atlas.store.moved_rows import MovedRows
from attention_atlas.store.output import Output
from attention_atlas.store.pyramids import Pyramids, Without, removed
from attention_atlas.store.relations import read_relations
from attention_atlas.store.rows import Float32, StoredLayer, indexes
from attention_atlas.store.scores import Scores, read_scores
from attention_atlas.store.shard import HeldTensors, ShardFile
from attention_atlas.store.shard_check import check_layer
from attention_atlas.store.tables import INPUTS, PICTURE_SUMS, TOKENS, read_captured
from attention_atlas.store.tiles import HeadOverview, Pyramid, Tile
from attention_atlas.store.write import JOURNAL, is_whole

Bools = npt.NDArray[np.bool_]
_log = logging.getLogger("attention_atlas")
_UNSEALED = (
    "was written by an older version without checksums of its manifest and pictures: damage to "
    "them is not noticed; to seal it, capture it again"
)
_PLURAL = {"query": "queries", "key": "keys", "value": "values"}


@dataclass(frozen=True)
class Terms:
    """Everything besides q·k that enters one head's softmax."""

    scale: float
    softcap: float | None
    sink: float | None
    seen: npt.NDArray[np.bool_]  # (N, M)
    added: Float32 | None  # (N, M), after the soft cap


class StoredAtlas:
    """One model over some inputs, stored in a folder, for reading."""

    def __init__(self, path: Path, manifest: Manifest, just_written: bool = False):
        self.path = path
        self.manifest = manifest
        self._just_written = just_written  # by this run, so checksums need not be compared
        self._shards: dict[int, ShardFile] = {}
        self._opening = Lock()
        self._layers: dict[tuple[int, str, int], StoredLayer] = {}
        self._pyramids = Pyramids()
        self._held_relations: pd.DataFrame | None = None
        self._seen_pictures: set[Path] = set()  # compared with their checksums
        self._moved: LRUCache[tuple[str, tuple[int, ...]], MovedRows] = LRUCache(8)
        self._given: LRUCache[tuple[object, ...], LayerGiven] = LRUCache(2)
        self._with_vectors = manifest.kept_inputs  # None: all inputs
        self._firsts = np.cumsum([0, *(shard.inputs for shard in manifest.shards)])

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the atlas in a folder; raise a StoreError if it is unfinished, damaged or newer."""
        path = Path(folder)
        if is_whole(path):
            manifest = Manifest.read(path)
            if not manifest.sealed:
                _log.warning("%s %s", path.name, _UNSEALED)
            return cls(path, manifest)
        if files.exists(path / JOURNAL):
            raise StoreError(
                f"{path} is not finished; run the command that started it again to resume"
            )
        if not files.exists(path):
            raise StoreError(f"there is no atlas at {str(path)[:200]}")
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

    @cached_property
    def output(self) -> Output:
        """Get the output projections of the layers, and what the logits are read from."""
        return Output(self.path, self.manifest)

    # Inputs, tokens, heads -----------------------------------------------------------------

    @cached_property
    def _tokens(self) -> pd.DataFrame:
        frame = read_captured(self.path, self.manifest, TOKENS)
        labels = read_labels(self.path, self.manifest)
        return frame if labels is None else frame.assign(label=labels.to_numpy())

    @cached_property
    def _inputs(self) -> pd.DataFrame:
        return read_captured(self.path, self.manifest, INPUTS)

    def inputs(self) -> pd.DataFrame:
        """Return one row per input: kind, text, second text, source file, the user's columns."""
        return self._inputs

    def tokens(self, input: int | None = None, stream: str | None = None) -> pd.DataFrame:
        """Return one row per token, of one input or all, of one stream or all."""
        frame = self._tokens
        if input is not None:
            frame = frame[frame["input"] == self._check_input(input)]
        if stream is not None:
            if stream not in self.manifest.streams:
                raise PickError(f"no stream is named {stream!r}; there are {self._say_streams()}")
            frame = frame[frame["stream"] == stream]
        return frame

    def vector_tokens(self, stream: str) -> pd.DataFrame:
        """Return the tokens of a stream whose vectors are stored, in the order of the vectors."""
        frame = self.tokens(stream=stream)
        if self._with_vectors is None:
            return frame
        return frame[frame["input"].isin(self._with_vectors)]

    def need_vectors(self, every: bool = False) -> None:
        """Raise a PickError if no vectors are stored, or not those of every input."""
        kept = self._with_vectors
        if kept is not None and (every or not kept):
            raise PickError(self.kept_words())

    def picture(self, input: int, image: int = 0) -> Path:
        """Return the path of one picture of an input."""
        listed = self.inputs()["images"].iloc[self._check_input(input)]
        names = [] if listed is None else list(listed)
        if not 0 <= image < len(names):
            pictures = f"pictures 0 to {len(names) - 1}" if names else "no pictures"
            raise PickError(f"input {input} has no picture {image}; it has {pictures}")
        with files.damage(self.path / str(names[image]), "capture it again"):
            path: Path = (self.path / names[image]).resolve()
            inside = path.is_relative_to(self.path.resolve())
        if not inside or not files.is_file(path):
            raise StoreError(f"{names[image]} is missing from {self.path}; capture it again")
        self._verify_picture(path, input, image)
        return path

    def _verify_picture(self, path: Path, input: int, image: int) -> None:
        """Compare a picture with its checksum, once; those of format 1 have none."""
        if not self.manifest.sealed or path in self._seen_pictures:
            return
        sums = self.inputs().get(PICTURE_SUMS)
        known = [] if sums is None or sums.iloc[input] is None else list(sums.iloc[input])
        if len(known) <= image or files.checksum(path) != known[image]:
            raise StoreError(
                f"{path} is damaged: its checksum does not match; capture the atlas again"
            )
        self._seen_pictures.add(path)

    def heads(self, without_sinks: bool = False) -> pd.DataFrame:
        """Return one row per head: tower, layer, group, errors; kind, scores and maps' figures.

        without_sinks  kinds and scores of weights without the sinks of each input, if measured
        """
        receipts = {(layer.tower, layer.layer): asdict(layer) for layer in self.receipt.layers}
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
        return self._with_maps(self._with_scores(pd.DataFrame(rows), without_sinks))

    def _with_maps(self, heads: pd.DataFrame) -> pd.DataFrame:
        figures, words = map_scores(self.path)
        if figures.empty:
            return heads
        values = figures.pivot(index="head", columns="measure", values="value")[list(words)]
        return heads.merge(values, on="head", how="left")

    def _with_scores(self, heads: pd.DataFrame, without_sinks: bool) -> pd.DataFrame:
        scores = self.scores(without_sinks)
        if scores is None:
            return heads
        kinds = scores.kinds[["head", "kind", "margin", "agree", "detail", "with_sink",
                              "without_sink", "sink"]]  # fmt: skip
        values = scores.table.pivot(index="head", columns="measure", values="value")
        values = values[[name for name in scores.measures if name in values.columns]]
        return heads.merge(kinds, on="head", how="left").merge(values, on="head", how="left")

    def scores(self, without_sinks: bool = False) -> Scores | None:
        """Read every score with its interval, count and chance; None if nothing was measured."""
        return read_scores(self.path, self.manifest, without_sinks)

    def relations(self) -> pd.DataFrame | None:
        """Read the agreement with trees by head, relation and way; None if no trees were given."""
        if self._held_relations is not None:
            return self._held_relations
        return read_relations(self.path, self.manifest)

    def hold_relations(self, table: pd.DataFrame | None) -> None:
        """Keep relations in memory, for a folder that cannot be written to."""
        self._held_relations = table

    # Attention -------------------------------------------------------------------------------

    def shape(self, input: int, layer: int, tower: str | None = None) -> tuple[int, int, int]:
        """Return how many heads, rows and columns the weights of an input have in one layer."""
        in_tower = self._tower(tower or "")
        about = self._layer(in_tower, layer)
        return about.heads, *self._stored(input, in_tower, about).size(input)

    def rows(
        self,
        input: int,
        layer: int,
        tower: str | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        columns: Sequence[int] | None = None,
    ) -> Float32:
        """Return the weights, float32 (H, R, C): how much each row looks at each column, by head.

        heads, rows (queries) and columns (keys) are numbers within the layer and the input, in any
        order; numbers below zero count from the end; None means all. The softmax is over all keys,
        so the weights of some columns sum to less than one. Besides the result, memory holds a few
        million numbers and the layer's keys of this input, never all N × M.
        """
        in_tower = self._tower(tower or "")
        stored = self._stored(input, in_tower, self._layer(in_tower, layer))
        if not stored.has("weights"):
            self._need(stored, "query", "key")
        n, m = stored.size(input)
        column_indexes = None if columns is None else indexes(columns, m, "columns")
        return stored.weights(
            input,
            indexes(heads, stored.layer.heads, "heads"),
            indexes(rows, n, "rows"),
            column_indexes,
        )

    def weights(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> Float32:
        """Return the weights of one head, float32 (N, M), or only those of `rows`."""
        tower, layer, number = self._find(head)
        return np.asarray(self.rows(input, layer.layer, tower.name, [number], rows)[0])

    def layer_weights(self, input: int = 0, layer: int = 0, tower: str | None = None) -> Float32:
        """Return the weights of all heads of a layer, float32 (H, N, M)."""
        return self.rows(input, layer, tower)

    # What is moved -----------------------------------------------------------------------------

    def contributions(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> Float32:
        """Return signed shares (N, M): what part of its layer's output a head brings from each key.

        ⟨w_ij f(v_j), y_i⟩ / ‖y_i‖²; with the bias' share, a row sums to one over all heads.
        """
        tower, layer, number = self._find(head)
        moved = self.moved_rows(CONTRIBUTION)
        return np.asarray(moved.rows(input, layer.layer, tower.name, [number], rows)[0])

    def moved_norms(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> Float32:
        """Return ‖w_ij f(v_j)‖ (N, M): how much a head moves from each key (Kobayashi's norms)."""
        tower, layer, number = self._find(head)
        moved = self.moved_rows(MOVED)
        return np.asarray(moved.rows(input, layer.layer, tower.name, [number], rows)[0])

    def moved_rows(self, how: str = CONTRIBUTION, without: Sequence[int] = ()) -> MovedRows:
        """Return the reader of what heads move, without some keys; it keeps what it read last."""
        key = how, tuple(without)
        if key not in self._moved:
            self._moved[key] = MovedRows(self, how, without)
        return self._moved[key]

    def attribution(
        self,
        input: int = 0,
        token: int | str | None = None,
        against: int | str | None = None,
        position: int = -1,
    ) -> Attribution:
        """Return what each head and each token adds to the logit of a token at a position.

        token     number or text of a token, or name or number of a class; None: the next token of
                  the text, or its own where there is none
        against   a second token: what is added to the difference of the two logits
        position  the token whose next token is predicted; of a classifier it is given
        """
        readout = self.output.readout
        stems = [(tower, layer, f"{tower.name}.L{layer.layer}")
                 for tower in self.towers for layer in tower.layers]  # fmt: skip
        adding = [entry for entry in stems if entry[2] in readout.layers]
        stream = next(layer.queries for tower, layer, _ in adding if tower.name == readout.tower)
        tokens = self.tokens(input, stream)
        place = {"first": 0, "last": len(tokens) - 1}.get(readout.place, position % len(tokens))
        wanted = next_token(tokens, place, readout) if token is None else token
        first = number_of(wanted, tokens, readout, self.tokens)
        second = None if against is None else number_of(against, tokens, readout, self.tokens)
        g = direction(readout, float(self._final_scale(input)[place]), first, second)
        layers = []
        for tower, layer, _ in adding:
            weights = self.rows(input, layer.layer, tower.name, rows=[place])
            values = self.layer_values(input, layer.layer, tower.name)
            adds = layer_adds(weights, values, self.output.projection(tower.name, layer.layer), g)
            names = [str(Head(self._prefix(tower), layer.layer, h)) for h in range(layer.heads)]
            layers.append(LayerAdds(tower.name, layer.layer, tuple(names), layer.keys, adds))
        missing = tuple(stem for _, _, stem in stems if stem not in readout.layers)
        return Attribution(
            input, place, str(wanted), None if against is None else str(against), tuple(layers),
            missing,
        )  # fmt: skip

    def _final_scale(self, input: int) -> Float32:
        """Return the scale of the final norm for each token of an input, (N,)."""
        shard = self.shard(self._shard_number(self._check_vectors(input)))
        if "final.scale" not in shard.names:
            raise PickError(f"{self.path.name} kept no scales of the final norm; capture it again")
        table = shard.tensor("final.inputs")
        before = table[table[:, 0] < input, 1].sum()
        count = table[table[:, 0] == input, 1].sum()
        return np.asarray(shard.tensor("final.scale")[before : before + count])

    def layer_values(self, input: int, layer: int, tower: str | None = None) -> Float32:
        """Return the values (G, M, E) of all groups of a layer."""
        in_tower = self._tower(tower or "")
        about = self._layer(in_tower, layer)
        stored = self._stored(input, in_tower, about)
        self._need(stored, "value")
        return stored.vectors("value", np.arange(about.groups), input)

    # Tiles of long inputs --------------------------------------------------------------------

    def tile(
        self, input: int, head: str | Head, level: int, row: int, column: int,
        without: Without = (),
    ) -> Tile:  # fmt: skip
        """Return one tile of a head: 256 × 256 cells, each of 2^level × 2^level weights.

        without  keys to take out, or "sinks"; rows are then softmaxes over the keys that are left
        """
        return self.pyramid(input, head, without).tile(level, row, column)

    def overview(
        self, input: int = 0, head: str | Head = "L0H0", sampled: bool = False,
        without: Without = (),
    ) -> HeadOverview:  # fmt: skip
        """Return a whole head of a long input in one tile, from all rows or from every 16th."""
        pyramid = self.pyramid(input, head, without)
        return pyramid.sampled if sampled else pyramid.overview()

    def window(
        self, input: int, layer: int, tower: str | None, rows: range, columns: range,
        heads: Sequence[int] | None = None,
    ) -> Float32:  # fmt: skip
        """Return the weights (H, R, C) of some rows and columns of a layer of a long input.

        With a stored log-sum-exp no other columns are computed; `rows` computes whole rows.
        """
        in_tower = self._tower(tower or "")
        about = self._layer(in_tower, layer)
        numbers = indexes(heads, about.heads, "heads").tolist()
        parts = [self._head_weights(input, in_tower, about, head) for head in numbers]
        return np.stack([window(part, rows, columns) for part in parts])

    def seen(self, input: int, head: str | Head, rows: range, columns: range) -> Bools:
        """Return which of some columns some rows may look at, (R, C)."""
        tower, layer, number = self._find(head)
        numbers = np.arange(rows.start, rows.stop)
        return self._stored(input, tower, layer).seen(input, np.array([number]), numbers, columns)

    def pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid:
        """Return all levels of tiles of a head; nothing is computed before it is asked for."""
        tower, layer, number = self._find(head)
        m = self._stored(input, tower, layer).size(input)[1]
        keys = removed(without, lambda: self.pyramid(input, head), m) if len(without) else ()
        return self._pyramids.get(
            (input, tower.name, layer.layer, number, keys),
            lambda: Pyramid(self._head_weights(input, tower, layer, number, keys), keys),
        )

    def moved_pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid:
        """Return all levels of tiles of what a head moves, w_ij ‖f(v_j)‖; a row sums to one."""
        tower, layer, number = self._find(head)
        m = self._stored(input, tower, layer).size(input)[1]
        keys = removed(without, lambda: self.pyramid(input, head), m) if len(without) else ()

        def make() -> Pyramid:
            values = self.layer_values(input, layer.layer, tower.name)
            projection = self.output.projection(tower.name, layer.layer)
            lengths = value_lengths(values, projection, [number], layer.heads // layer.groups)[0]
            return Pyramid(self._head_weights(input, tower, layer, number, keys, lengths), keys)

        return self._pyramids.get((MOVED, input, tower.name, layer.layer, number, keys), make)

    def contribution_pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid:
        """Return all levels of tiles of a head's contributions, times the layer's heads."""
        tower, layer, number = self._find(head)
        m = self._stored(input, tower, layer).size(input)[1]
        keys = removed(without, lambda: self.pyramid(input, head), m) if len(without) else ()
        place = input, tower.name, layer.layer

        def make() -> Pyramid:
            values = self.layer_values(input, layer.layer, tower.name)
            weights = [self._head_weights(input, tower, layer, h, keys) for h in range(layer.heads)]
            projection = self.output.projection(tower.name, layer.layer)
            if (*place, keys) not in self._given:  # shared by the heads of a layer
                self._given[*place, keys] = LayerGiven(weights, values, projection)
            own = values[number * layer.groups // layer.heads]
            shares = HeadShares(weights[number], self._given[*place, keys], number, own)
            return Pyramid(shares, keys, signed=True)

        return self._pyramids.get((CONTRIBUTION, *place, number, keys), make)

    def _head_weights(
        self, input: int, tower: Tower, layer: Layer, head: int, without: Sequence[int] = (),
        lengths: Float32 | None = None,
    ) -> HeadWeights:  # fmt: skip
        stored = self._stored(input, tower, layer)
        if stored.has("weights"):
            return StoredWeights(stored, input, head, without, lengths)
        self._need(stored, "query", "key")
        return ComputedWeights(stored, input, head, without, lengths)

    # Vectors ---------------------------------------------------------------------------------

    def queries(self, head: str | Head, input: int | None = None) -> Float32:
        """Return the queries of a head (N, D), of one input or of all inputs in token order."""
        tower, layer, number = self._find(head)
        return self._vectors("query", tower, layer, number, input)

    def keys(self, head: str | Head, input: int | None = None) -> Float32:
        """Return the keys that a head reads (M, D); heads of one group share them."""
        tower, layer, number = self._find(head)
        return self._vectors("key", tower, layer, number * layer.groups // layer.heads, input)

    def values(self, head: str | Head, input: int | None = None) -> Float32:
        """Return the values that a head moves (M, E)."""
        tower, layer, number = self._find(head)
        return self._vectors("value", tower, layer, number * layer.groups // layer.heads, input)

    def terms(self, head: str | Head, input: int = 0) -> Terms:
        """Return scale, soft cap, sink, mask and bias of a head."""
        tower, layer, number = self._find(head)
        stored, heads = self._stored(input, tower, layer), np.array([number])
        sink, added = stored.sink(heads), stored.added(input, heads)
        return Terms(
            layer.scale, layer.softcap, None if sink is None else float(sink[0]),
            stored.seen(input, heads), None if added is None else added[0],
        )  # fmt: skip

    def sink(self, head: str | Head, input: int = 0) -> float | None:
        """Return the logit of a head's sink; None if it has none."""
        tower, layer, number = self._find(head)
        sink = self._stored(input, tower, layer).sink(np.array([number]))
        return None if sink is None else float(sink[0])

    def layer_terms(
        self, head: str | Head, input: int, rows: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.bool_], Float32 | None]:
        """Return what any head of a layer sees in some rows, (R, M), and its biases (H, R, M)."""
        tower, layer, _ = self._find(head)
        stored, heads = self._stored(input, tower, layer), np.arange(layer.heads)
        return stored.seen(input, heads, rows), stored.added(input, heads, rows)

    def layer_form(self, head: str | Head, input: int) -> tuple[object, ...] | None:
        """Return what layers have in common whose heads see alike in an input.

        None where the layer has a mask or a bias of its own, or several softmaxes.
        """
        tower, layer, _ = self._find(head)
        return self._stored(input, tower, layer).alike(input)

    def layer_of(self, head: str | Head) -> Layer:
        """Return what is known of the layer of a head."""
        return self._find(head)[1]

    def has(self, what: str, layer: int = 0, tower: str | None = None) -> bool:
        """Tell whether the "query", "key", "value" or "weights" of a layer are stored."""
        in_tower = self._tower(tower or "")
        return f"{in_tower.name}.L{layer}.{what}" in self.shard(0).names

    # Reading shards ----------------------------------------------------------------------------

    def held_layer(self, number: int, tower: Tower, layer: Layer) -> StoredLayer:
        """Return a layer of one shard that keeps each tensor in memory once it was read."""
        stored = StoredLayer(self._checked(number, tower, layer, held=True), tower.name, layer)
        if any(stored.counts) and not stored.has("weights"):
            self._need(stored, "query", "key")
        return stored

    def layers_of(
        self, inputs: Iterable[int], head: str | Head
    ) -> list[tuple[StoredLayer, list[int]]]:
        """Return the layer of a head in each shard that holds some inputs, with those inputs."""
        tower, layer, _ = self._find(head)
        found = []
        for number, own in groupby(sorted(inputs), self._shard_number):
            stored = self._shard_layer(number, tower, layer)
            if not stored.has("weights"):
                self._need(stored, "query", "key")
            found.append((stored, list(own)))
        return found

    def _stored(self, input: int, tower: Tower, layer: Layer) -> StoredLayer:
        """Return a layer of the shard that holds an input."""
        return self._shard_layer(self._shard_number(self._check_vectors(input)), tower, layer)

    def _shard_layer(self, number: int, tower: Tower, layer: Layer) -> StoredLayer:
        key = number, tower.name, layer.layer
        if key not in self._layers:
            shard = self._checked(number, tower, layer)
            self._layers[key] = StoredLayer(shard, tower.name, layer)
        return self._layers[key]

    def _checked(
        self, number: int, tower: Tower, layer: Layer, held: bool = False
    ) -> ShardFile | HeldTensors:
        """Open one file of vectors and compare a layer in it with the manifest.

        held  keep each tensor in memory once it was read
        """
        shard = self.shard(number)
        tensors = HeldTensors(shard.tensor, shard.names) if held else shard
        if isinstance(shard, ShardFile):
            first, last = (int(edge) for edge in self._firsts[number : number + 2])
            check_layer(shard, tower.name, layer, range(first, last), tensors.tensor)
        return tensors

    def _vectors(
        self, what: str, tower: Tower, layer: Layer, entry: int, input: int | None
    ) -> Float32:
        numbers = range(len(self._firsts) - 1)
        if input is not None:
            numbers = range(self._shard_number(self._check_vectors(input)), len(numbers))[:1]
        else:
            self.need_vectors()
        vectors = []
        for number in numbers:
            stored = self._shard_layer(number, tower, layer)
            if input is None and self._with_vectors is not None and not any(stored.counts):
                continue
            self._need(stored, what)
            vectors.append(stored.vectors(what, np.array([entry]), input)[0])
        return np.concatenate(vectors)

    def layer_vectors(self, what: str, heads: Sequence[str], rows: npt.NDArray[np.int64]) -> Array:
        """Return the queries or keys ("query", "key") of some heads of one layer.

        They are in the type that they are stored in: (heads, rows, D), of rows among all inputs.
        """
        found = [self._find(head) for head in heads]
        (tower, layer, _), numbers = found[0], np.array([number for _, _, number in found])
        share = 1 if what == "query" else layer.heads // layer.groups
        entries, own = np.unique(numbers // share, return_inverse=True)
        firsts = np.concatenate(
            [[0], np.cumsum(self.shard_sizes(heads[0])[:, int(what != "query")])]
        )
        vectors: Array | None = None  # (entries, rows, D)
        for number, (first, last) in enumerate(pairwise(firsts.tolist())):
            inside = np.flatnonzero((rows >= first) & (rows < last))
            if not inside.size and rows.size:  # a shard may keep no vectors at all
                continue
            stored = self._shard_layer(number, tower, layer)
            self._need(stored, what)
            wide = stored.kind(what)
            if vectors is None:
                vectors = np.empty((len(entries), len(rows), wide.shape[-1]), wide.dtype)
            elif np.result_type(vectors, wide.dtype) != vectors.dtype:
                vectors = vectors.astype(wide.dtype)
            stored.fill(what, entries, rows[inside] - first, vectors, inside)
        assert vectors is not None  # rows are those of shards
        return vectors if np.array_equal(own, np.arange(len(entries))) else vectors[own]

    def shard_sizes(self, head: str | Head) -> npt.NDArray[np.int64]:
        """Count the queries and the keys of a head in each file of vectors: (files, 2)."""
        tower, layer, _ = self._find(head)
        numbers = range(len(self.manifest.shards))
        return np.array([self._shard_layer(number, tower, layer).counts for number in numbers])

    def in_shard(
        self, number: int, what: str, head: str | Head, rows: npt.NDArray[np.int64] | slice
    ) -> Float32:
        """Return some "query" or "key" vectors of a head in one file of vectors: (rows, D)."""
        tower, layer, entry = self._find(head)
        stored = self._shard_layer(number, tower, layer)
        self._need(stored, what)
        entry = entry if what == "query" else entry * layer.groups // layer.heads
        return stored.vectors_at(what, entry, rows)

    def _need(self, stored: StoredLayer, *what: str) -> None:
        missing = [name for name in what if not stored.has(name)]
        if missing:
            kept = ", ".join(self.manifest.keep) or "none"
            raise StoreError(
                f"{self.path.name} was captured without {_PLURAL[missing[0]]} (kept: {kept}); "
                "capture it again with them"
            )

    # Finding inputs, towers, layers --------------------------------------------------------------

    def _shard_number(self, input: int) -> int:
        return int(np.searchsorted(self._firsts, self._check_input(input), side="right")) - 1

    def shard(self, number: int) -> ShardFile | HeldTensors:
        """Open one file of vectors; check its checksum on first use."""
        with self._opening:  # several threads would each compare the whole file
            if number not in self._shards:
                about = self.manifest.shards[number]
                checksum = None if self._just_written else about.checksum
                self._shards[number] = ShardFile(self.path / about.file, about.bytes, checksum)
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
        match = next((tower for tower in self.towers if tower.name == name), None)
        if match is None:
            names = ", ".join(tower.name for tower in self.towers)
            asked = f"no tower is named {name!r}" if name else "this model has several towers"
            raise PickError(f"{asked}; name one of {names}, as in {self.towers[0].name}.L0H0")
        return match

    def _layer(self, tower: Tower, number: int) -> Layer:
        layer = tower.find(number)
        if layer is not None:
            return layer
        receipts = [
            receipt
            for receipt in self.receipt.layers
            if (receipt.tower, receipt.layer) == (tower.name, number)
        ]
        if receipts:
            raise PickError(f"layer {number} of {tower.name} is not stored: {receipts[0].reason}")
        if number < tower.depth:
            raise PickError(f"layer {number} of {tower.name} has no attention")
        raise PickError(f"{tower.name} has layers 0 to {tower.depth - 1}, not {number}")

    def _prefix(self, tower: Tower) -> str:
        return tower.name if len(self.towers) > 1 else ""

    def _check_input(self, input: int) -> int:
        if not 0 <= input < len(self):
            raise PickError(f"there is no input {input}; this atlas has 0 to {len(self) - 1}")
        return input

    def _check_vectors(self, input: int) -> int:
        if self._with_vectors is None or self._check_input(input) in self._with_vectors:
            return input
        raise PickError(f"input {input} has no vectors: {self.kept_words()}")

    def kept_words(self) -> str:
        """Say which vectors this atlas holds, and how to get others."""
        asked, kept = self.manifest.options.get("vectors"), sorted(self._with_vectors or ())
        if not kept:
            return (
                f"{self.path.name} was captured with vectors={asked!r}, so it has scores alone; "
                "to see attention, capture it again with vectors='sample:20000' or 'all'"
            )
        some = ", ".join(str(number) for number in kept[:5]) + (" …" if len(kept) > 5 else "")
        return (
            f"{self.path.name} was captured with vectors={asked!r}, which kept those of "
            f"{len(kept)} of {len(self)} inputs ({some}); pick one of these, or capture it again "
            "with vectors='all'"
        )

    def _say_streams(self) -> str:
        return ", ".join(self.manifest.streams)
