"""Which earlier head does a head read? Composition of their matrices, from the weights alone.

An earlier head writes x V₁ᵀ O₁ into the stream. A later one uses what it finds there as its query,
its key or its value; how much of its matrix meets what the earlier one writes is

    ‖M₁ M₂‖ / (‖M₁‖ ‖M₂‖)      M₁ = V₁ᵀ O₁,   M₂ = QᵀK (query), KᵀQ (key) or VᵀO (value)

in Frobenius norms. Matrices that have nothing to do with each other give about 1 / √width. The
score of a head is the largest over all heads of earlier layers; no inputs, so no interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.measure.arrays import Floats

SOURCE = "Elhage et al. 2021, A Mathematical Framework for Transformer Circuits"
SIDES = {"q": "query", "k": "key", "v": "value"}
FORMULA = "max over earlier heads of ‖V₁ᵀO₁ · M‖ / (‖V₁ᵀO₁‖ ‖M‖), M the head's {} circuit"


@dataclass(frozen=True)
class CircuitLayer:
    """The matrices of one layer's heads, each (H, D or E, width); shared keys are repeated."""

    query: Floats
    key: Floats
    value: Floats
    output: Floats


def composition(layers: Sequence[CircuitLayer]) -> dict[str, Floats]:
    """Return q, k and v → (heads, heads): how much each head (row) reads each earlier (column)."""
    counts = np.cumsum([0, *(len(layer.query) for layer in layers)])
    found = {side: np.full((counts[-1], counts[-1]), np.nan) for side in SIDES}
    for late, layer in enumerate(layers):
        for early, writer in enumerate(layers[:late]):
            place = np.ix_(
                range(counts[late], counts[late + 1]), range(counts[early], counts[early + 1])
            )
            found["q"][place] = _ratio(writer, layer.query, layer.key)
            found["k"][place] = _ratio(writer, layer.key, layer.query)
            found["v"][place] = _ratio(writer, layer.value, layer.output)
    return found


def _ratio(writer: CircuitLayer, first: Floats, second: Floats) -> Floats:
    """Return ‖V₁ᵀO₁ AᵀB‖ / (‖V₁ᵀO₁‖ ‖AᵀB‖) for heads with A = first and B = second: (H₂, H₁).

    ‖VᵀXB‖² is the trace of (V Vᵀ) X (B Bᵀ) Xᵀ, so nothing of width × width is made.
    """
    value, output, reads, gives = (
        _gram(part) for part in (writer.value, writer.output, first, second)
    )
    # X = O₁ Aᵀ of every pair, (H₁, H₂, E, D)
    meet = np.einsum("hew,gdw->hged", writer.output, first, optimize=True)
    through = np.einsum("hef,hgfd->hged", value, meet, optimize=True)
    both = np.einsum("hged,gdc,hgec->hg", through, gives, meet, optimize=True)
    written = np.sqrt(np.einsum("hef,hfe->h", value, output))
    read = np.sqrt(np.einsum("gdc,gcd->g", reads, gives))
    sizes = np.maximum(np.outer(written, read), 1e-300)
    return np.asarray((np.sqrt(np.maximum(both, 0)) / sizes).T)


def _gram(matrices: Floats) -> Floats:
    """Return the products of all rows of each head's matrix, (H, D, D)."""
    return np.asarray(np.einsum("hdw,hew->hde", matrices, matrices, optimize=True))


def strongest(pairs: Floats) -> tuple[Floats, Floats]:
    """Return the largest of each row, NaN where there is none, and the earlier head it is of."""
    known = np.where(np.isnan(pairs), -np.inf, pairs)
    best = known.argmax(1)
    largest = known[np.arange(len(pairs)), best]
    return np.where(np.isfinite(largest), largest, np.nan), best
