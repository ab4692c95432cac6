"""Where do the tokens lie that are not in the sample of a map?

The sample stays where it is. The other queries and keys of a head are placed among it in blocks
of fixed size, so time is linear in the tokens and memory does not grow with them, except for the
result. Each block is a part of a journal: a run that was killed resumes with those that are
missing. On a map made of attention the new queries then look at the keys of their inputs
(`newcomers`), some inputs at a time. A head that cannot be placed is left with its sample, with a
sentence that says why.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from attention_atlas.layout.device import one_thread
from attention_atlas.layout.joint import Joint, join
from attention_atlas.layout.looks import find_looks
from attention_atlas.layout.neighbours import as_points
from attention_atlas.layout.newcomers import AttentionMap
from attention_atlas.layout.packed import packed_places
from attention_atlas.layout.place import Known, place
from attention_atlas.layout.plan import made_of_attention, points_of
from attention_atlas.layout.sample import Numbers
from attention_atlas.layout.sight import read_sight
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.head import Head
from attention_atlas.names.progress import bar
from attention_atlas.store.all_places import (
    AllPlaces,
    all_places_path,
    is_placed,
    map_digest,
    write_all_places,
)
from attention_atlas.store.files import Array
from attention_atlas.store.maps import SIDES, Float32, Map, MapHeads
from attention_atlas.store.parts import Contents, Journal
from attention_atlas.store.reader import StoredAtlas

BLOCK = 1 << 16  # tokens placed for one part of the journal
TOGETHER = 1 << 12  # of them, moved at once; always cut at the same tokens, so that runs agree
Watch = Callable[[int, int], None]  # takes tokens done, tokens in all; may raise to stop the run


@dataclass(frozen=True)
class TokenBlock:
    """Rows `first` to `last` of one side of a head in one file of vectors."""

    side: str
    shard: int
    first: int
    last: int


@dataclass(frozen=True)
class HeadMap:
    """One head of a map, ready for more tokens."""

    atlas: StoredAtlas
    layout: Map
    head: str
    device: str = "cpu"

    @cached_property
    def group(self) -> MapHeads:
        groups = self.layout.groups.values()
        match = next((group for group in groups if self.head in group.heads), None)
        if match is None:
            raise PickError(f"this map has no head {self.head!r}; write it as in L5H1")
        return match

    @cached_property
    def sizes(self) -> dict[str, list[int]]:
        """Count the queries and the keys of the head in each file of vectors."""
        sizes = self.atlas.shard_sizes(self.head)
        return dict(zip(SIDES, sizes.T.tolist(), strict=True))

    @property
    def tokens(self) -> int:
        """Count the queries and keys of the head."""
        return sum(map(sum, self.sizes.values()))

    def blocks(self) -> list[TokenBlock]:
        return [
            TokenBlock(side, shard, first, min(first + BLOCK, size))
            for side in SIDES
            for shard, size in enumerate(self.sizes[side])
            for first in range(0, size, BLOCK)
        ]

    @cached_property
    def rows(self) -> tuple[Numbers, Numbers]:
        """Find the rows of the map's tokens among all queries, and among all keys, of the head."""
        tokens = (self.group.query_tokens, self.group.key_tokens)
        found = [
            np.searchsorted(table["token"].to_numpy(), numbers)
            for table, numbers in zip(self._tables, tokens, strict=True)
        ]
        return found[0].astype(np.int64), found[1].astype(np.int64)

    @cached_property
    def joint(self) -> tuple[Joint, Tensor]:
        """Fit the normalisation to the map's tokens again; returns it and the map's points."""
        queries, keys = self._vectors
        joint = join(queries, keys, self.layout.options["asked"]["joint"])
        return joint, as_points(joint.points(queries, keys), joint.metric)

    @cached_property
    def _vectors(self) -> tuple[Tensor, Tensor]:
        """Read the queries and keys of the map's tokens, (1, N, width) each."""
        queries, keys = (
            torch.from_numpy(self._picked(side, rows))[None].to(self.device).float()
            for side, rows in zip(SIDES, self.rows, strict=True)
        )
        return queries, keys

    @cached_property
    def known(self) -> Known:
        joint, points = self.joint
        places = torch.from_numpy(self.places[None]).to(self.device)
        return Known(points, places, joint.metric, often=True)

    @cached_property
    def places(self) -> Float32:
        """Return the places of the map's queries, then of its keys: (N + M, dims)."""
        return self.layout.of(self.head)[0]

    def _picked(self, side: str, rows: Numbers) -> Float32:
        """Read some rows of one side, a file of vectors at a time."""
        ends = np.cumsum([0, *self.sizes[side]])
        parts = []
        for shard, (first, last) in enumerate(pairwise(ends)):
            own = rows[(rows >= first) & (rows < last)] - first
            if len(own):
                parts.append(self.atlas.in_shard(shard, side, self.head, own))
        return np.concatenate(parts)

    @cached_property
    def attention(self) -> AttentionMap | None:
        """Return the map as one made of attention; None if it was made in another way."""
        if not made_of_attention(self.layout.options["asked"]):
            return None
        queries, keys = self._vectors
        places = torch.from_numpy(self.places[None]).to(self.device)
        return AttentionMap(queries, keys, places, often=True)

    def place_block(self, block: TokenBlock) -> Float32:
        """Place the tokens of a block; returns (rows, dims)."""
        rows = slice(block.first, block.last)
        vectors = self.atlas.in_shard(block.shard, block.side, self.head, rows)
        given = torch.from_numpy(vectors)[None].to(self.device).float()
        try:
            placed = [self._place(some, block.side) for some in torch.split(given, TOGETHER, 1)]
        except InputError as problem:
            bad = int((~np.isfinite(vectors).all(1)).sum())
            raise InputError(
                f"{self.head} keeps to its sample: {bad} of its {block.side} vectors hold NaN or "
                "infinity; capture the model in float32"
            ) from problem
        return np.asarray(torch.cat(placed, 1)[0].cpu().numpy(), np.float32)

    def _place(self, vectors: Tensor, side: str) -> Tensor:
        method = self.layout.options["asked"]["method"]
        if self.attention is not None:
            return self.attention.place_side(vectors, side, method)
        joint = self.joint[0]
        moved = joint.queries(vectors) if side == "query" else joint.keys(vectors)
        return place(as_points(moved, joint.metric), self.known, method)

    def input_blocks(self) -> list[tuple[int, int]]:
        """Cut the inputs into blocks of some tokens, where new queries look at their keys."""
        if self.attention is None:
            return []
        sizes = np.bincount(self._tables[0]["input"], minlength=self.atlas.manifest.inputs)
        part = np.cumsum(sizes) // TOGETHER
        cuts = np.flatnonzero(np.diff(part, prepend=-1))
        return list(pairwise([*cuts.tolist(), len(sizes)]))

    def look(self, inputs: tuple[int, int], places: Float32) -> dict[str, Array]:
        """Let the queries of some inputs look at their keys; returns new places and their rows."""
        assert self.attention is not None
        rows = [
            np.arange(*np.searchsorted(table["input"], inputs), dtype=np.int64)
            for table in self._tables
        ]
        both = np.concatenate([rows[0], len(self._tables[0]) + rows[1]])
        if not len(rows[0]) or not len(rows[1]):
            return {"rows": both, "places": places[both]}
        vectors = [
            torch.from_numpy(self._picked(side, of_side))[None].to(self.device).float()
            for side, of_side in zip(SIDES, rows, strict=True)
        ]
        points = points_of(self._tables, rows)
        sight = read_sight(self.atlas, self.head, points, torch.device(self.device))
        number = Head.parse(self.head).head
        looks = find_looks(vectors[0], vectors[1], sight, slice(number, number + 1))
        start = torch.from_numpy(places[both][None]).to(self.device)
        return {"rows": both, "places": self.attention.look(start, looks)[0].cpu().numpy()}

    @cached_property
    def _tables(self) -> list[pd.DataFrame]:
        layer = self.atlas.layer_of(self.head)
        return [self.atlas.vector_tokens(stream) for stream in (layer.queries, layer.keys)]


def place_head(head_map: HeadMap, path: Path, watch: Watch = lambda done, total: None) -> AllPlaces:
    """Place all tokens of a head on its map and write them beside the map's file `path`."""
    digest, blocks = map_digest(head_map.group, head_map.head), head_map.blocks()
    inputs = head_map.input_blocks()
    target = all_places_path(path, head_map.head)
    journal = Journal.beside(target, {"map": digest, "blocks": str(blocks)})
    total = head_map.tokens

    def report() -> None:
        watch(sum(_size(blocks[number]) for number in journal.parts if number < len(blocks)), total)

    report()
    for number in journal.missing(len(blocks)):
        with one_thread(torch.device(head_map.device)):
            placed = head_map.place_block(blocks[number])
        journal.add(number, Contents({"places": placed}))
        report()
    places = np.concatenate([journal.arrays(number)["places"] for number in range(len(blocks))])
    for number in range(len(blocks), len(blocks) + len(inputs)):
        if number not in journal.parts:
            with one_thread(torch.device(head_map.device)):
                looked = head_map.look(inputs[number - len(blocks)], places)
            journal.add(number, Contents(looked))
            report()
        looked = journal.arrays(number)
        places[looked["rows"]] = looked["places"]
    queries, keys = head_map.rows
    places[np.concatenate([queries, sum(head_map.sizes["query"]) + keys])] = head_map.places
    packed, box = packed_places(torch.from_numpy(places[None]))
    found = AllPlaces(packed[0], box[0])
    write_all_places(target, found, digest)
    journal.sweep()
    return found


def place_rest(
    atlas: StoredAtlas,
    layout: Map,
    heads: Sequence[str] | None = None,
    device: str = "cpu",
    progress: bool = True,
) -> list[str]:
    """Place all tokens of some heads, or of all; returns a sentence for each head it could not."""
    options = layout.options["asked"]
    path = atlas.path / "layouts" / f"{options['method']}-{options['dims']}d.safetensors"
    missing = list(heads_to_place(layout, path, heads))
    troubles = []
    for number, head in enumerate(missing):
        head_map = HeadMap(atlas, layout, head, device)
        label = f"{head}, {number + 1} of {len(missing)} heads: tokens placed"
        try:
            with bar(label, head_map.tokens, progress) as show:
                place_head(head_map, path, lambda done, total: show(done))
        except InputError as problem:
            troubles.append(str(problem))
    return troubles


def heads_to_place(layout: Map, path: Path, heads: Sequence[str] | None = None) -> Iterator[str]:
    """Yield the heads, of those asked for, whose tokens are not all on the map of `path` yet."""
    known = [head for group in layout.groups.values() for head in group.heads]
    for head in known if heads is None else heads:
        if head not in known:
            raise PickError(f"this map has no head {head!r}; write it as in {known[0]}")
    for group in layout.groups.values():
        for head in group.heads:
            asked = heads is None or head in heads
            if asked and not is_placed(all_places_path(path, head), map_digest(group, head)):
                yield head


def _size(block: TokenBlock) -> int:
    return block.last - block.first
