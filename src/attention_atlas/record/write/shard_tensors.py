"""How do the pieces of many batches become the tensors of one shard?"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_atlas.names.errors import AtlasError
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.pieces import Piece
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.store import softmax
from attention_atlas.store.files import Array, Numbers
from attention_atlas.store.shard import Block, Packer

LayerName = tuple[str, int]  # tower, layer number


@dataclass
class ShardPieces:
    """The pieces of a shard's inputs, layer by layer."""

    keep: tuple[str, ...]
    pieces: dict[LayerName, dict[int, list[Piece]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    calls: dict[LayerName, Call] = field(default_factory=dict)  # one per layer, for its scale
    scales: dict[int, Tensor] = field(default_factory=dict)  # of the final norm, by input

    def refuse_lost_tokens(
        self, number: int, tokens: Mapping[str, Mapping[str, Any]], plan: CapturePlan
    ) -> None:
        """Raise an AtlasError unless every query and key of an input is one of its tokens."""
        for layer in plan.layers:
            by_input = self.pieces.get((layer.tower, layer.number), {})
            if number not in by_input:
                continue
            for stream, count in (
                (layer.queries, sum(piece.query.shape[1] for piece in by_input[number])),
                (layer.keys, sum(piece.key.shape[1] for piece in by_input[number])),
            ):
                token_count = len(tokens[stream]["text"])
                if token_count != count:
                    raise AtlasError(
                        f"layer {layer.number} of {layer.tower} has {count} places for the "
                        f"{token_count} tokens of {stream} in input {number}; "
                        "this model pads or pools in a way that cannot be shown yet"
                    )

    def tensors(self, kept: Collection[int] | None = None) -> dict[str, Numbers]:
        """Return the arrays of a shard, joined from its pieces, by name.

        kept  the inputs to take; None: all
        """
        packer = Packer()
        out: dict[str, Numbers] = {}
        for tower, number in self.pieces:
            by_input = self.pieces[tower, number]
            stem, call = f"{tower}.L{number}", self.calls[tower, number]
            numbers = [index for index in sorted(by_input) if kept is None or index in kept]
            ordered = [(index, piece) for index in numbers for piece in by_input[index]]
            parts = [piece for _, piece in ordered]
            if not parts:
                out[f"{stem}.blocks"] = packer.blocks([])
                continue
            if parts[0].query.shape[-1]:
                for what in ("query", "key", "value"):
                    if what in self.keep:
                        out[f"{stem}.{what}"] = Joined([getattr(p, what) for p in parts])
                sums = [piece.lse for piece in parts if piece.lse is not None]
                if len(sums) == len(parts) and {"query", "key"} <= set(self.keep):
                    out[f"{stem}.lse"] = Joined(sums)
            if "weights" in self.keep or not parts[0].query.shape[-1]:
                out[f"{stem}.weights"] = np.concatenate(
                    [_flat_weights(piece, call) for piece in parts], axis=1
                )
            if call.sink is not None:
                out[f"{stem}.sink"] = call.sink.float().cpu().numpy()
            out[f"{stem}.blocks"] = packer.blocks(
                [Block(i, p.query.shape[1], p.key.shape[1], p.form) for i, p in ordered]
            )
        numbers = [index for index in sorted(self.scales) if kept is None or index in kept]
        if numbers:
            sizes = [[index, len(self.scales[index])] for index in numbers]
            out["final.inputs"] = np.array(sizes, np.int32)
            out["final.scale"] = torch.cat([self.scales[index] for index in numbers]).numpy()
        return out | packer.tensors


class Joined:
    """Vectors (H, Σ n, D) or numbers (H, Σ n) of many inputs, joined only when they are written.

    Until then memory holds them once. They are float32 if any of them is, else fp16.
    """

    def __init__(self, vectors: list[Tensor]):
        self.vectors = vectors
        heads, _, *width = vectors[0].shape
        self.shape = (heads, sum(v.shape[1] for v in vectors), *width)
        fine = any(v.dtype != torch.float16 for v in vectors)
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if fine else np.float16)
        self.itemsize = self.dtype.itemsize
        self.nbytes = math.prod(self.shape) * self.itemsize
        self._ready: Any = None  # on a GPU: passed when all kernels before it have run
        if vectors[0].is_cuda:
            self._ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._ready.record(torch.cuda.current_stream(vectors[0].device))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self._ready is not None:
            return np.asarray(_from_gpu(self.vectors, self.dtype, self._ready), dtype=dtype)
        # NumPy concatenates on this thread alone; torch would compete with the model for cores.
        parts = [v.cpu().numpy().astype(self.dtype, copy=False) for v in self.vectors]
        return np.asarray(np.concatenate(parts, axis=1), dtype=dtype)

    def __getitem__(self, places: tuple[slice, slice]) -> Tensor:
        """Return some heads of neighbours (H, n, D) where they are, on a GPU perhaps."""
        heads, span = places
        first, last, _ = span.indices(self.shape[1])
        parts, start = [], 0
        for vectors in self.vectors:
            end = start + vectors.shape[1]
            if start < last and first < end:
                parts.append(vectors[heads, max(0, first - start) : last - start])
            start = end
        kind = torch.float32 if self.dtype == np.float32 else torch.float16
        parts = [part.to(kind) for part in parts] or [self.vectors[0][heads, :0].to(kind)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (np.asarray(self),)  # another process gets the array itself


def _from_gpu(vectors: list[Tensor], dtype: np.dtype[Any], ready: Any) -> Array:
    """Join vectors of a GPU along their second axis; return the array in pinned memory.

    They are joined and copied on a stream of their own, beside the kernels of the model.
    """
    device = vectors[0].device
    kind = torch.float32 if dtype == np.float32 else torch.float16
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_event(ready)
    with torch.cuda.stream(stream):
        joined = torch.cat([vector.to(kind) for vector in vectors], 1)
        host = torch.empty(joined.shape, dtype=kind, pin_memory=True)
        host.copy_(joined, non_blocking=True)
    stream.synchronize()  # lets other threads of Python run
    return np.asarray(host.numpy())


def _flat_weights(piece: Piece, call: Call) -> Array:
    """Return the weights (H, n·m): the model's own if it gave them, else recomputed."""
    if piece.weights is not None:
        weights: Any = piece.weights.float().cpu().numpy()
    else:
        weights = softmax.weights(
            piece.query.float().cpu().numpy(),
            piece.key.float().cpu().numpy(),
            scale=call.scale,
            softcap=call.softcap,
            sink=None if call.sink is None else call.sink.float().cpu().numpy(),
            form=piece.form,
        )
    return np.asarray(weights.reshape(len(weights), -1), dtype=np.float32)
