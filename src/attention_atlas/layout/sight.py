"""Which keys does each query of a map see, and with which logits?

The tokens of a map are cut into blocks of inputs of about the same length, padded, so that all
logits of a block are one matrix product for all heads. A long input is a block of its own, some
rows at a time. What is seen comes from the masks as captured; a bias is added to the logits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attention_atlas.layout.sample import Numbers
from attention_atlas.store.files import Array
from attention_atlas.store.reader import StoredAtlas

SPREAD = 1.25  # the longest input of a block against its shortest
Bools = npt.NDArray[np.bool_]
CELLS = 1 << 20  # of one block: inputs × rows × keys


@dataclass(frozen=True)
class MapTokens:
    """The tokens of a map: their inputs, positions in the stream, and which are special."""

    query_inputs: Numbers
    key_inputs: Numbers
    query_positions: Numbers
    key_positions: Numbers
    special_queries: Bools
    special_keys: Bools


@dataclass(frozen=True)
class SightBlock:
    """Some rows of some inputs; −1 pads."""

    query: Tensor  # (inputs, n) numbers of the map's queries
    key: Tensor  # (inputs, m) numbers of the map's keys
    seen: Tensor  # (inputs, n, m) bool
    added: Tensor | None  # (heads, inputs, n, m) bias of the logits

    @property
    def rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the input and place in this block of each real query, and its number."""
        at = (self.query >= 0).nonzero(as_tuple=True)
        return at[0], at[1], self.query[at]


@dataclass(frozen=True)
class Sight:
    """What the queries of a layer see among the keys of the map."""

    blocks: tuple[SightBlock, ...]
    special_queries: Tensor  # (N,) bool
    special_keys: Tensor  # (M,) bool
    query_inputs: Tensor  # (N,)
    key_inputs: Tensor  # (M,)
    scale: float
    softcap: float | None

    @property
    def cells(self) -> int:
        """Count the cells of the largest block."""
        return max((block.seen.numel() for block in self.blocks), default=0)

    def thinned(self, rows: int) -> "Sight":
        """Return the same with about so many queries, evenly spaced."""
        step = max(1, len(self.special_queries) // rows)
        if step == 1:
            return self
        blocks = []
        for block in self.blocks:
            kept = (block.query >= 0) & (block.query % step == 0)
            most = int(kept.sum(1).max())
            if not most:
                continue
            row = kept.int().sort(dim=1, descending=True, stable=True).indices[:, :most]
            query = block.query.gather(1, row).where(kept.gather(1, row), row.new_tensor(-1))
            at = row[:, :, None].expand(-1, -1, block.seen.shape[2])
            seen = block.seen.gather(1, at) & (query >= 0)[:, :, None]
            added = block.added
            if added is not None:
                added = added.gather(2, at[None].expand(len(added), -1, -1, -1))
            blocks.append(SightBlock(query, block.key, seen, added))
        return replace(self, blocks=tuple(blocks))

    @cached_property
    def _flat(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return all masks in one list, where each query's row starts, each key's column."""
        device = self.special_keys.device
        start = torch.full_like(self.special_queries, -1, dtype=torch.int64)
        column = torch.zeros_like(self.special_keys, dtype=torch.int64)
        base, flat = 0, [torch.zeros(1, dtype=torch.bool, device=device)]
        for block in self.blocks:
            inputs, places, numbers = block.rows
            _, n, m = block.seen.shape
            start[numbers] = 1 + base + (inputs * n + places) * m
            at = (block.key >= 0).nonzero(as_tuple=True)
            column[block.key[at]] = at[1]
            flat.append(block.seen.reshape(-1))
            base += block.seen.numel()
        return torch.cat(flat), start, column

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """Tell whether queries see keys of their own input; takes numbers of any shape."""
        flat, start, column = self._flat
        first = start[query]
        return flat[torch.where(first < 0, 0, first + column[key])]

    def logits(self, block: SightBlock, queries: Tensor, keys: Tensor, heads: slice) -> Tensor:
        """Compute what softmax sees of queries (heads, N, width): (heads, inputs, n, m).

        `heads` says which heads of the layer these are. Keys that are not seen get −inf.
        """
        q, k = queries[:, block.query.clamp_min(0)], keys[:, block.key.clamp_min(0)]
        logits = (q @ k.transpose(2, 3)).mul_(self.scale)
        if self.softcap:
            logits = (logits / self.softcap).tanh_().mul_(self.softcap)
        if block.added is not None:
            logits += block.added[heads] if len(block.added) > 1 else block.added
        return logits.masked_fill_(~block.seen, -torch.inf)


Sights = Sequence[tuple[Sight, slice, slice]]  # a layer's, which of its heads, their places here


def read_sight(atlas: StoredAtlas, head: str, points: MapTokens, device: torch.device) -> Sight:
    """Read what the layer of a head lets its queries see; alike for all heads of the layer."""
    blocks = []
    for inputs, pairs in _cut(points):
        query, key = _pad([queries for queries, _ in pairs]), _pad([keys for _, keys in pairs])
        seen = np.zeros((len(inputs), query.shape[1], key.shape[1]), bool)
        biases: dict[int, Array] = {}
        for place, (number, (queries, keys)) in enumerate(zip(inputs, pairs, strict=True)):
            rows, columns = points.query_positions[queries], points.key_positions[keys]
            mask, bias = atlas.layer_terms(head, number, rows)
            seen[place, : len(rows), : len(columns)] = mask[:, columns]
            if bias is not None:
                biases[place] = bias[:, :, columns]
        blocks.append(_block(query, key, seen, _biases(biases, seen.shape), device))
    layer = atlas.layer_of(head)
    return _sight(blocks, points, device, layer.scale, layer.softcap)


def plain_sight(points: MapTokens, causal: bool, device: torch.device, scale: float = 1.0) -> Sight:
    """Make the sight of a layer without biases: all keys of the input, or the earlier ones."""
    blocks = []
    for _, pairs in _cut(points):
        query, key = _pad([queries for queries, _ in pairs]), _pad([keys for _, keys in pairs])
        seen = (query >= 0)[:, :, None] & (key >= 0)[:, None]
        if causal:
            rows, columns = points.query_positions[query], points.key_positions[key]
            seen &= rows[:, :, None] >= columns[:, None]
        blocks.append(_block(query, key, seen, None, device))
    return _sight(blocks, points, device, scale, None)


def _block(
    query: Numbers, key: Numbers, seen: Bools, bias: Array | None, device: torch.device
) -> SightBlock:
    tensors = [torch.from_numpy(array).to(device) for array in (query, key, seen)]
    added = None if bias is None else torch.from_numpy(bias).to(device)
    return SightBlock(tensors[0], tensors[1], tensors[2], added)


def _sight(
    blocks: list[SightBlock],
    points: MapTokens,
    device: torch.device,
    scale: float,
    softcap: float | None,
) -> Sight:
    special = [torch.from_numpy(of).to(device) for of in (points.special_queries,
               points.special_keys)]  # fmt: skip
    inputs = [torch.from_numpy(of).to(device) for of in (points.query_inputs, points.key_inputs)]
    return Sight(tuple(blocks), special[0], special[1], inputs[0], inputs[1], scale, softcap)


Pair = tuple[Numbers, Numbers]  # numbers of queries and of keys of one input


def _cut(points: MapTokens) -> Iterator[tuple[list[int], list[Pair]]]:
    """Yield inputs of about the same length with their queries and keys, block by block."""
    inputs: list[int] = []
    pairs: list[Pair] = []
    for number, queries, keys in sorted(_of_inputs(points), key=lambda item: len(item[2])):
        tall = max(1, CELLS // len(keys))
        for first in range(0, len(queries), tall):
            rows = queries[first : first + tall]
            tallest = max([len(rows), *(len(pair[0]) for pair in pairs)])
            full = (len(inputs) + 1) * tallest * len(keys) > CELLS
            if inputs and (full or len(keys) > SPREAD * len(pairs[0][1]) + 4):
                yield inputs, pairs
                inputs, pairs = [], []
            inputs.append(number)
            pairs.append((rows, keys))
    if inputs:
        yield inputs, pairs


def _of_inputs(points: MapTokens) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Yield each input that has queries and keys on the map; tokens are in order of inputs."""
    for number in np.intersect1d(points.query_inputs, points.key_inputs).tolist():
        spans = [
            np.arange(*np.searchsorted(numbers, [number, number + 1]))
            for numbers in (points.query_inputs, points.key_inputs)
        ]
        yield number, spans[0], spans[1]


def _pad(rows: list[Numbers]) -> Numbers:
    padded = np.full((len(rows), max(map(len, rows))), -1, np.int64)
    for place, numbers in enumerate(rows):
        padded[place, : len(numbers)] = numbers
    return padded


def _biases(biases: dict[int, Array], shape: tuple[int, ...]) -> Array | None:
    if not biases:
        return None
    whole = np.zeros((max(map(len, biases.values())), *shape), np.float32)
    for place, bias in biases.items():
        whole[:, place, : bias.shape[1], : bias.shape[2]] = bias
    return whole
