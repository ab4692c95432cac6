"""How do the pieces of many batches become the tensors of one shard?"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_atlas.record.call import Call
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

    def tensors(self) -> dict[str, Array]:
        packer = Packer()
        out: dict[str, Array] = {}
        for (tower, number), by_input in self.pieces.items():
            stem, call = f"{tower}.L{number}", self.calls[tower, number]
            ordered = [(index, piece) for index in sorted(by_input) for piece in by_input[index]]
            parts = [piece for _, piece in ordered]
            fine = self.rounding[tower, number] > ROUNDING_LIMIT
            if parts[0].query.shape[-1]:
                for what in ("query", "key", "value"):
                    if what in self.keep:
                        out[f"{stem}.{what}"] = _joined([getattr(p, what) for p in parts], fine)
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


def _joined(vectors: list[Tensor], fine: bool) -> Array:
    """(H, Σ n, D), in fp16 unless that is too coarse or too small a range."""
    whole = torch.cat([v.to(vectors[0].device) for v in vectors], dim=1)
    if not fine:
        half = whole.half()
        if bool(torch.isfinite(half).all()):
            return np.asarray(half.cpu().numpy())
    return np.asarray(whole.float().cpu().numpy())


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
