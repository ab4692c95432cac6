"""How do the pieces of many batches become the tensors of one shard?"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_atlas.record.call import Call
from attention_atlas.record.layers import LayerCalls
from attention_atlas.record.pieces import Piece
from attention_atlas.store import softmax
from attention_atlas.store.files import Array
from attention_atlas.store.shard import Block, Packer

# fp16 keeps weights within 1e-3 of the model's; sampled rows must do better than that by half.
ROUNDING_LIMIT = 5e-4
LayerName = tuple[str, int]  # tower, layer number


@dataclass
class Shard:
    """What a few inputs left behind, layer by layer."""

    keep: tuple[str, ...]
    pieces: dict[LayerName, dict[int, list[Piece]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    calls: dict[LayerName, Call] = field(default_factory=dict)  # one of each layer, for its scale
    rounding: dict[LayerName, float] = field(default_factory=lambda: defaultdict(float))
    run_error: float = 0.0

    def rounded(self, layer: LayerCalls, name: LayerName) -> LayerCalls:
        """The layer in fp16 where that is fine, at once, so that its memory is free again.

        Whoever asks for weights wants them as exact as can be, so then nothing is rounded.
        """
        if self.rounding[name] > ROUNDING_LIMIT or "weights" in self.keep:
            return layer
        steps = tuple(tuple(_in_half(call) for call in calls) for calls in layer.steps)
        return replace(layer, steps=steps)

    def tensors(self) -> dict[str, Array]:
        """The arrays to write; each layer's pieces are let go as soon as they are joined."""
        packer = Packer()
        out: dict[str, Array] = {}
        for tower, number in list(self.pieces):
            by_input = self.pieces.pop((tower, number))
            stem, call = f"{tower}.L{number}", self.calls[tower, number]
            ordered = [(index, piece) for index in sorted(by_input) for piece in by_input[index]]
            parts = [piece for _, piece in ordered]
            if parts[0].query.shape[-1]:
                for what in ("query", "key", "value"):
                    if what in self.keep:
                        out[f"{stem}.{what}"] = _joined([getattr(p, what) for p in parts])
            if "weights" in self.keep or not parts[0].query.shape[-1]:
                out[f"{stem}.weights"] = np.concatenate(
                    [_flat_weights(piece, call) for piece in parts], axis=1
                )
            if call.sink is not None:
                out[f"{stem}.sink"] = call.sink.float().cpu().numpy()
            out[f"{stem}.blocks"] = packer.blocks(
                [Block(i, p.query.shape[1], p.key.shape[1], p.form) for i, p in ordered]
            )
        return out | packer.tensors


def _in_half(call: Call) -> Call:
    """Vectors in fp16; values stay as they are where one of them is beyond its range."""
    low, high = torch.aminmax(call.value) if call.value.numel() else (0.0, 0.0)
    fits = max(-float(low), float(high)) < torch.finfo(torch.float16).max
    return replace(
        call,
        query=call.query.half(),
        key=call.key.half(),
        value=call.value.half() if fits else call.value.float(),
    )


def _joined(vectors: list[Tensor]) -> Array:
    """(H, Σ n, D), in float32 as soon as one piece needs it."""
    fine = any(v.dtype != torch.float16 for v in vectors)
    kind = torch.float32 if fine else torch.float16
    return np.asarray(torch.cat([v.to(kind) for v in vectors], dim=1).cpu().numpy())


def _flat_weights(piece: Piece, call: Call) -> Array:
    """(H, n·m): the model's own where it gave them, else recomputed."""
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
