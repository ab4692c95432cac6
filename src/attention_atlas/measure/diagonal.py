"""How much attention lies on one diagonal?"""

import numpy as np

from attention_atlas.measure.look import Floats, Look, nothing


def diagonal(look: Look, offset: int) -> Floats:
    """(H,): mean weight on key i + offset, over the rows that see it and have a choice."""
    rows = np.arange(max(0, -offset), min(len(look.seen), look.seen.shape[1] - offset))
    rows = rows[look.seen[rows, rows + offset] & look.choosing[rows]]
    if not rows.size:
        return nothing(look)
    return np.asarray(look.weights[:, rows, rows + offset].mean(1))
