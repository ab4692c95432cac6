"""What does a head move, and what part of its layer's output is that?

A layer gives  y_i = Σ_h Σ_j w_hij f_h(v_j) + b  with f_h(v) = v @ projection[h]. Of row i:

    moved          ‖w_hij f_h(v_j)‖                     Kobayashi's norms (arXiv 2004.10102)
    contribution   ⟨w_hij f_h(v_j), y_i⟩ / ‖y_i‖²       contribution weights (arXiv 2606.07604)

A contribution is the share of y_i that token j brings through head h: it is below zero where the
two point apart, and over all heads and tokens, with the share of the bias, ⟨b, y_i⟩ / ‖y_i‖², the
shares of a row sum to one. A row whose output is zero has no shares: they are zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.store.output import Float32, LayerProjection

MOVED, CONTRIBUTION = "moved", "contribution"


@dataclass(frozen=True)
class Given:
    """What a layer gives to some rows, and what that is for each head's values."""

    output: Float32  # (R, width)
    back: Float32  # (H, R, E): output @ projection[h].T, so that f_h(v) · output = v · back
    squares: Float32  # (R,) ‖output‖²


def moved_vectors(weights: Float32, values: Float32) -> Float32:
    """Return what heads move (H, R, E), not projected, of weights (H, R, M), values (G, M, E)."""
    heads, n, m = weights.shape
    groups, _, width = values.shape
    together = weights.reshape(groups, heads // groups * n, m) @ values
    return np.asarray(together.reshape(heads, n, width))


def layer_output(weights: Float32, values: Float32, projection: LayerProjection) -> Given:
    """Return what a layer gives, of the weights (H, R, M) of all its heads, values (G, M, E)."""
    moved = moved_vectors(weights, values)
    heads, n, width = moved.shape
    flat = projection.matrix.reshape(heads * width, -1)  # (H·E, width of the model)
    output = moved.transpose(1, 0, 2).reshape(n, heads * width) @ flat
    if projection.bias is not None:
        output = output + projection.bias
    back = (output @ flat.T).reshape(n, heads, width).transpose(1, 0, 2)
    squares = np.einsum("rd,rd->r", output, output, dtype=np.float64)
    return Given(output, back.astype(np.float32, copy=False), squares.astype(np.float32))


def contributions(
    weights: Float32, values: Float32, given: Given, heads: Sequence[int], group: int
) -> Float32:
    """Return signed shares (H, R, M) of some heads: their weights (H, R, M), values (G, M, E).

    group  number of heads that share one value
    """
    size = np.where(given.squares > 0, given.squares, np.inf)[:, None].astype(np.float32)
    shares = np.empty(weights.shape, np.float32)
    for place, head in enumerate(heads):
        np.matmul(given.back[head] / size, values[head // group].T, out=shares[place])
    shares *= weights
    return shares


def norms(
    weights: Float32, values: Float32, projection: LayerProjection, heads: Sequence[int], group: int
) -> Float32:
    """Return the lengths ‖w_ij f_h(v_j)‖ (H, R, M) of some heads."""
    lengths = np.stack([
        np.linalg.norm(values[head // group] @ projection.matrix[head], axis=1) for head in heads
    ])  # fmt: skip
    return np.asarray(weights * lengths[:, None])
