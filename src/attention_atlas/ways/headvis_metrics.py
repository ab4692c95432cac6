"""Which numbers does HeadVis show of a head? Six of its metrics, by its own definitions.

They are means over all rows of all inputs. Those that need logits are left out: weights alone do
not tell them where they are 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from attention_atlas.store.rows import Float32

Floats = npt.NDArray[np.float64]
WORDS: Mapping[str, str] = {
    "self_attention_score": "Mean weight of a token on itself",
    "previous_token_score": "Mean weight on the token before",
    "pattern_entropy": "Mean entropy of a row, in nats",
    "qk_distance": "Mean distance of query and key, weighted by attention",
    "qk_distance_variance": "Variance of that distance",
    "induction_score": "Mean weight on what followed the same token before",
}


@dataclass
class HeadVisSums:
    """Sums over rows of the weights of some heads, (H,) each."""

    heads: int
    rows: int = 0
    later_rows: int = 0  # rows that have a token before
    sums: dict[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = ("own", "before", "entropy", "mass", "far", "far_squared", "followed")
        self.sums = {name: np.zeros(self.heads) for name in names}

    def add(self, weights: Float32, tokens: list[str]) -> None:
        """Add the weights (H, N, N) of one input."""
        whole, n = weights.astype(np.float64), len(tokens)
        rows, columns = np.indices((n, n))
        apart = np.abs(rows - columns)
        logs = np.log(np.where(whole > 0, whole, 1.0))
        self.rows += n
        self.later_rows += n - 1
        added = {
            "own": whole.diagonal(axis1=1, axis2=2).sum(-1),
            "before": whole.diagonal(-1, 1, 2).sum(-1),
            "entropy": -(whole * logs).sum((1, 2)),
            "mass": whole.sum((1, 2)),
            "far": (whole * apart).sum((1, 2)),
            "far_squared": (whole * apart**2).sum((1, 2)),
            "followed": (whole * _followed(tokens)).sum((1, 2)),
        }
        for name, values in added.items():
            self.sums[name] += values

    def metrics(self) -> dict[str, Floats]:
        """Return each metric, (H,)."""
        sums, rows = self.sums, max(1, self.rows)
        mass = np.where(sums["mass"] > 0, sums["mass"], 1.0)
        mean = sums["far"] / mass
        return {
            "self_attention_score": sums["own"] / rows,
            "previous_token_score": sums["before"] / max(1, self.later_rows),
            "pattern_entropy": sums["entropy"] / rows,
            "qk_distance": mean,
            "qk_distance_variance": np.maximum(sums["far_squared"] / mass - mean**2, 0.0),
            "induction_score": sums["followed"] / rows,
        }


def _followed(tokens: list[str]) -> npt.NDArray[np.bool_]:
    """Return (N, N): whether the key stands after an earlier token equal to the query."""
    names = np.array(tokens, dtype=object)
    same: npt.NDArray[np.bool_] = np.tril(names[:, None] == names[None, :], k=-1).astype(np.bool_)
    shifted = np.zeros_like(same)
    shifted[:, 1:] = same[:, :-1]
    return shifted
