"""How do the causal effects of heads become scores of an atlas?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_atlas.names.errors import InputError
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.studies.measure import refuse_another

if TYPE_CHECKING:
    import pandas as pd

    from attention_atlas.measure.run import Ready
    from attention_atlas.models.inputs import Input

_INSTEAD = {
    "zero": "nothing",
    "mean": "its mean over other inputs",
    "resample": "what it moved at the same position of another input",
}


def causal_scores(
    atlas: StoredAtlas | str | Path,
    model: Any,
    tokenizer: Any = None,
    *,
    by: str = "resample",
    budget: float | None = None,
    seed: int = 0,
    progress: bool = True,
    **loading: Any,
) -> "pd.DataFrame":
    """Measure the causal effect of each head of an atlas and keep it there; return the table."""
    from attention_atlas.lab.causal.study import Asked, causal_table
    from attention_atlas.measure.run import known_scores, measure_atlas
    from attention_atlas.models.encode import encode
    from attention_atlas.models.load import load

    opened = atlas if isinstance(atlas, StoredAtlas) else StoredAtlas.open(atlas)
    loaded = load(model, tokenizer, **loading)
    refuse_another(opened, loaded)
    cut = bool(opened.manifest.options.get("truncate"))
    given = [_input(opened, number, row) for number, row in enumerate(_rows(opened))]
    items = [encode(loaded, each, truncate=cut) for each in given]
    asked = Asked(by=by, budget=budget, seed=seed, progress=progress)
    table = causal_table(loaded, items, asked)
    known = known_scores(opened)
    measured_with = 0 if known is None else int(known.options.get("seed", 0))
    extras = _scores(opened, table)
    measure_atlas(opened, extras, seed=measured_with, progress=progress)
    return table


def _rows(atlas: StoredAtlas) -> list[Any]:
    return [row for _, row in atlas.inputs().iterrows()]


def _input(atlas: StoredAtlas, number: int, row: Any) -> "Input":
    """Return an input of an atlas as it was given."""
    from attention_atlas.models.inputs import Input

    if row["kind"] == "image":
        return Input("image", images=(atlas.picture(number),))
    if row["kind"] not in ("text", "pair"):
        raise InputError(
            f"input {number} is of kind {row['kind']}; causal importance of an atlas needs texts "
            "or pictures"
        )
    second = row["second"] if row["kind"] == "pair" else None
    return Input(row["kind"], text=row["text"], second=second)


def _scores(atlas: StoredAtlas, table: "pd.DataFrame") -> "list[Ready]":
    """Return the columns of a table as scores of the heads of an atlas."""
    from attention_atlas.measure.definition import ANY, SHARE
    from attention_atlas.measure.run import Ready

    rows = table.set_index("head").reindex([str(name) for name in atlas.heads()["head"]])
    instead, nothing = _INSTEAD[table.attrs["by"]], np.full(len(rows), np.nan)
    effect = f"loss when the head moves {instead}, less the plain loss (nats)"
    if table.attrs["exact_inputs"] < rows["n"].max():
        effect += f"; estimated, {table.attrs['exact_inputs']} inputs exact"
    n = rows["n"].fillna(0).to_numpy(np.float64)

    def ready(name: str, title: str, formula: str, column: str, bounds: Any = ANY) -> Ready:
        own = column == "effect"
        low, high, control = (rows[x] if own else nothing for x in ("low", "high", "control"))
        columns = np.stack([rows[column], low, high, n, control], 1)
        means = "the mean effect of the other heads of the layer" if own else "not known"
        return Ready(name, title, formula, "ours: docs/causal.md", columns, means, bounds)

    return [
        ready("causal", "causal effect", effect, "effect"),
        ready("causal-q", "causal effect, q", "false-discovery rate over heads", "q", SHARE),
        ready("causal-direct", "direct effect", f"{effect}; all after it frozen", "direct"),
        ready("causal-gap", "self-repair", "direct effect less causal effect", "gap"),
    ]
