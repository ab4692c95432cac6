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


_CANCELS = (
    1e-2  # an output whose square is below this part of its heads' squares is added up itself
)


@dataclass(frozen=True)
class Given:
    """What a layer gives to some rows, as far as the values of its heads can tell."""

    back: Float32  # (H, R, E): output @ projection[h].T, so that f_h(v) · output = v · back
    squares: Float32  # (R,) ‖output‖²

    @property
    def nbytes(self) -> int:
        return self.back.nbytes + self.squares.nbytes


def moved_vectors(weights: Float32, values: Float32) -> Float32:
    """Return what heads move (H, R, E), not projected, of weights (H, R, M), values (G, M, E)."""
    heads, n, m = weights.shape
    groups, _, width = values.shape
    together = weights.reshape(groups, heads // groups * n, m) @ values
    return np.asarray(together.reshape(heads, n, width))


def layer_output(weights: Float32, values: Float32, projection: LayerProjection) -> Given:
    """Return what a layer gives, of the weights (H, R, M) of all its heads, values (G, M, E)."""
    return given_to_rows(moved_vectors(weights, values), projection)


def given_to_rows(moved: Float32, projection: LayerProjection) -> Given:
    """Return what a layer gives, of what all its heads move (H, R, E)."""
    heads, n, width = moved.shape
    rows = moved.transpose(1, 0, 2).reshape(n, heads * width)
    back, squares = _by_products(rows, projection)
    return Given(back.reshape(n, heads, width).transpose(1, 0, 2), squares)


def _by_products(rows: Float32, projection: LayerProjection) -> tuple[Float32, Float32]:
    """Return output @ projection.T (R, H·E) and ‖output‖² (R,) of what heads moved (R, H·E).

    One product with the projection's own products, instead of one there and one back, where these
    pay. Where heads and bias nearly cancel, that loses digits, and the output itself is computed.
    """
    products = projection.products_for(len(rows))
    if products is None:
        return _by_output(rows, projection)
    back = rows @ products
    squares: Float32 = np.einsum("rd,rd->r", rows, back)
    sizes = squares
    if projection.bias is not None:
        along, bias = projection.bias_products
        sizes, squares = squares + bias, squares + 2 * (rows @ along) + bias
        back += along
    parts = np.square(rows) @ np.diagonal(products) + sizes
    lost = np.flatnonzero(squares <= np.float32(_CANCELS) * parts)
    if lost.size:
        back[lost], squares[lost] = _by_output(rows[lost], projection)
    return back, squares


def _by_output(rows: Float32, projection: LayerProjection) -> tuple[Float32, Float32]:
    output = rows @ projection.flat
    if projection.bias is not None:
        output = output + projection.bias
    squares = np.einsum("rd,rd->r", output, output, dtype=np.float64)
    back: Float32 = np.asarray(output @ projection.flat.T, np.float32)
    return back, squares.astype(np.float32)


def contributions(
    weights: Float32, values: Float32, given: Given, heads: Sequence[int], group: int,
    times: float = 1,
) -> Float32:  # fmt: skip
    """Return signed shares (H, R, M) of some heads: their weights (H, R, M), values (G, M, E).

    group  number of heads that share one value
    times  a factor of all shares
    """
    size = np.where(given.squares > 0, given.squares / times, np.inf)[:, None].astype(np.float32)
    shares = np.empty(weights.shape, np.float32)
    for place, head in enumerate(heads):
        own = np.matmul(given.back[head] / size, values[head // group].T, out=shares[place])
        own *= weights[place]  # while it is in the cache
    return shares


def norms(
    weights: Float32, values: Float32, projection: LayerProjection, heads: Sequence[int], group: int
) -> Float32:
    """Return the lengths ‖w_ij f_h(v_j)‖ (H, R, M) of some heads."""
    return np.asarray(weights * value_lengths(values, projection, heads, group)[:, None])


def value_lengths(
    values: Float32, projection: LayerProjection, heads: Sequence[int], group: int
) -> Float32:
    """Return the lengths ‖f_h(v_j)‖ (H, M) of what values (G, M, E) become in some heads."""
    own = values[[head // group for head in heads]]  # (H, M, E)
    turned = own @ projection.factors[list(heads)].swapaxes(1, 2)
    return np.asarray(np.sqrt(np.einsum("hme,hme->hm", turned, turned)))
