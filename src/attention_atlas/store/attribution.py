"""What does each head, and each token that it looks at, add to a logit?

The logit of token t at position p is factor · norm(x_p) · u_t, and x_p is a sum of what the layers
gave. With the scale of the final norm held as it was (a norm is then linear), head h adds

    Σ_j w_hpj f_h(v_j) · g        g = factor · scale_p · gain ⊙ (u_t − u_other), minus its mean in a
                                  layer norm

A norm or scale between projection and stream (Gemma 2) is held in the same way. What goes through
later layers is not counted: this is the direct effect. Shift and bias belong to no head.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.names.errors import PickError
from attention_atlas.store.contributions import moved_vectors
from attention_atlas.store.output import Float32, LayerProjection, Readout


@dataclass(frozen=True)
class LayerAdds:
    """What the heads of one layer add to a logit."""

    tower: str
    layer: int
    heads: tuple[str, ...]  # their names
    keys: str  # the stream of the tokens that they look at
    adds: Float32  # (H, M)


@dataclass(frozen=True)
class Attribution:
    """What each head and token adds to the logit of a token, or to a difference of two."""

    input: int
    position: int
    token: str
    against: str | None
    layers: tuple[LayerAdds, ...]
    missing: tuple[str, ...]  # layers that do not add to this stream, as in encoder.L0

    def heads(self) -> pd.DataFrame:
        """Return one row per head: head, tower, layer, adds."""
        rows = [
            {"head": name, "tower": layer.tower, "layer": layer.layer, "adds": float(adds.sum())}
            for layer in self.layers
            for name, adds in zip(layer.heads, layer.adds, strict=True)
        ]
        return pd.DataFrame(rows, columns=["head", "tower", "layer", "adds"])

    def tokens(self, keys: str | None = None) -> Float32:
        """Return what each token that is looked at adds through all heads, (M,), of one stream."""
        stream = keys or self.layers[0].keys
        return np.asarray(
            np.sum([layer.adds.sum(0) for layer in self.layers if layer.keys == stream], axis=0)
        )

    @property
    def total(self) -> float:
        """Get what all heads add together."""
        return float(sum(layer.adds.sum(dtype=np.float64) for layer in self.layers))


def direction(readout: Readout, scale: float, token: int, against: int | None) -> Float32:
    """Return g (width,): what one unit of the stream adds to a logit, or to a difference of two."""
    row = _row(readout, token)
    if against is not None:
        row = row - _row(readout, against)
    g = readout.factor * scale * readout.gain.astype(np.float64) * row
    return (g - g.mean() if readout.norm == "layer" else g).astype(np.float32)


def _row(readout: Readout, token: int) -> npt.NDArray[np.float64]:
    place = np.flatnonzero(readout.ids == token)
    if not place.size:
        kind = "class" if readout.classes is not None else "token"
        raise PickError(
            f"the unembedding of {kind} {token} is not kept: only those of tokens that occur in "
            "the inputs are; give one of these"
        )
    return np.asarray(readout.rows[place[0]].astype(np.float64))


def layer_adds(
    weights: Float32, values: Float32, projection: LayerProjection, g: Float32
) -> Float32:
    """Return what heads add (H, M), of the weights (H, 1, M) of one row, values (G, M, E)."""
    own = g if not projection.after else _through(weights, values, projection, g)
    back = projection.matrix @ own  # (H, E)
    share = len(back) // len(values)
    along = np.stack([values[head // share] @ back[head] for head in range(len(back))])  # (H, M)
    return np.asarray(weights[:, 0] * along)


def _through(weights: Float32, values: Float32, projection: LayerProjection, g: Float32) -> Float32:
    """Return g before the norm or scale that stands after the projection, which is held."""
    assert projection.gain is not None
    held = projection.gain * g
    if projection.after == "scale":
        return np.asarray(held)
    moved = moved_vectors(weights, values)  # (H, 1, E)
    given = np.einsum("hre,hed->d", moved, projection.matrix, dtype=np.float64)
    if projection.bias is not None:
        given = given + projection.bias
    if projection.after == "layer":
        held, given = held - held.mean(), given - given.mean()
    return np.asarray(held / max(np.sqrt((given**2).mean()), 1e-12), np.float32)
