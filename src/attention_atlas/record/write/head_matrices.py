"""Which parameters make the queries, keys and values of each head?

Found by what the linear layers of an attention module give in a trial (`weight_correlation.py` says
how), so no layer names are needed. Norms before the projections are not folded in.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from attention_atlas.record.prove.receipt import Trial
from attention_atlas.record.watch.linear import TOKENS
from attention_atlas.record.write.weight_correlation import makers

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HeadMatrices:
    """The parameters of one layer, cut by heads; x @ matrix.T is what they make of a token x."""

    query: Float64 | None  # (H, D, width); None: not found
    key: Float64 | None  # (G, D, width)
    value: Float64 | None  # (G, E, width)


def head_matrices(trial: Trial) -> dict[str, HeadMatrices]:
    """Return `tower.Lnumber` → the parameters of each layer's heads."""
    found = {}
    for layer in trial.layers:
        call = layer.first
        outputs = trial.made.get(call.module, [])
        sides = (side[0, :, :TOKENS].float() for side in (call.query, call.key, call.value))
        matrices = [_stacked(makers(side, outputs)) for side in sides]
        found[f"{trial.names[layer.tower_key]}.L{layer.number}"] = HeadMatrices(*matrices)
    return found


def _stacked(parts: list[Tensor | None]) -> Float64 | None:
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts) or not whole:
        return None
    return np.stack([part.double().cpu().numpy() for part in whole])
