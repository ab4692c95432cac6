"""Does a head write what it reads? The eigenvalues of its OV circuit.

A head turns a token x that it looks at into x Vᵀ O. Positive eigenvalues of Vᵀ O mean that it adds
more of what is there: it copies. 1: all are positive; −1: it takes away what it reads; 0: neither.
The model's parameters as they are, without norms, embedding and unembedding; no inputs, so no
interval.
"""

import numpy as np

from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.definition import Bounds

NAME, TITLE = "ov-copying", "copying, by OV eigenvalues"
FORMULA = "Re Σ λ / Σ |λ| over the eigenvalues λ of the head's value and output matrices together"
SOURCE = "Elhage et al. 2021, A Mathematical Framework for Transformer Circuits"
BOUNDS: Bounds = (-1.0, 1.0)


def copying(value: Floats, output: Floats) -> Floats:
    """Return the score of each head (H,) from values (G, E, width) and outputs (H, E, width)."""
    share = len(output) // len(value)
    scores = []
    for head, matrix in enumerate(output):
        # Vᵀ O (width, width) has the eigenvalues of O Vᵀ (E, E), and zeros.
        values = np.linalg.eigvals(matrix.astype(np.float64) @ value[head // share].T)
        size = np.abs(values).sum()
        scores.append(values.real.sum() / size if size > 0 else np.nan)
    return np.array(scores)
