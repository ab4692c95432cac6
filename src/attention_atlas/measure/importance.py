"""How important are the heads of a model, and how much do they differ?

Exactly as in the study (Guo): the importance of a head is the largest of its weights (2), the
relative importance RI of a model is the standard deviation of that over heads, divided by n (3),
and Table 1 lists number, mean, RI, minimum, quartiles and maximum. A causal model's first row sees
one key and its weight is 1, so all its heads have importance 1 and RI is 0; the same table without
rows that see one key stands beside it.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from attention_atlas.names.errors import InputError
from attention_atlas.store.scores import Scores

ROWS = ("Number of heads", "Mean", "RI", "Min", "25%", "50%", "75%", "Max")


def statistics(importance: Sequence[float]) -> dict[str, float]:
    """Compute one column of Table 1 from the importance of each head; returns row → figure."""
    values = np.asarray(importance, np.float64)
    if not values.size:
        raise InputError("no head has an importance; measure inputs of two tokens or more")
    quarters = np.percentile(values, [25, 50, 75])
    figures = [
        len(values), values.mean(), np.sqrt(np.mean((values - values.mean()) ** 2)),
        values.min(), *quarters, values.max(),
    ]  # fmt: skip
    return dict(zip(ROWS, map(float, figures), strict=True))


def importance_table(scores: Scores, measure: str = "importance") -> pd.DataFrame:
    """Make Table 1 of one atlas: a column for all heads, and one for the heads of each kind."""
    rows = scores.table[scores.table["measure"] == measure]
    joined = rows.merge(scores.kinds[["head", "kind"]], on="head", how="left")
    columns = {"all heads": statistics(joined["value"].tolist())}
    for kind, group in joined.groupby("kind", sort=True):
        columns[str(kind)] = statistics(group["value"].tolist())
    return pd.DataFrame(columns, index=list(ROWS))
