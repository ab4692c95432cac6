"""In how many directions does a head write? The effective rank of its output over an input.

exp of the entropy of the singular values of what the head adds to each token, as shares of their
sum: 1 if it always adds the same direction, at most the width of its values. Chance is a head that
is even over the keys that it may see.
"""

import numpy as np

from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.definition import Bounds

NAME, TITLE = "output-rank", "effective rank of the output"
FORMULA = (
    "exp(−Σ p ln p), p the singular values of the head's output (tokens × width) over their sum"
)
SOURCE = "Roy & Vetterli 2007, The effective rank"
BOUNDS: Bounds = (1.0, float("inf"))


def effective_rank(outputs: Floats) -> Floats:
    """Return the effective rank of each head's outputs (H, N, width or fewer columns), (H,)."""
    sizes = np.linalg.svd(outputs, compute_uv=False)  # (H, least of N and width)
    total = sizes.sum(1, keepdims=True)
    shares = sizes / np.where(total > 0, total, 1)
    logs = np.log(np.where(shares > 0, shares, 1))
    return np.where(total[:, 0] > 0, np.exp(-(shares * logs).sum(1)), np.nan)


def root(projection: Floats) -> Floats:
    """Return a square (H, E, E) whose rows have the products of the rows of (H, E, width).

    Outputs turned by it have the same singular values as in the model's full width.
    """
    gram = np.einsum("hew,hfw->hef", projection, projection, optimize=True)
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0))[:, None])
