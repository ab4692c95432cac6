"""What did a patching study find? A table with one row a world, and a picture of it."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from attention_atlas.lab.patching.picture import head_grid, position_grid
from attention_atlas.names.arguments import checked_methods
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.store.files import write_whole

KEYS = ["direction", "what", "head", "through", "position", "token", "metric"]


@checked_methods({})
@dataclass(frozen=True)
class Patching:
    """The results of a patching study.

    table   pair, direction, what, head, through, position, token, metric, clean, corrupt, patched,
            recovered = (patched − corrupt) / (clean − corrupt)
    layers  the names of the heads of each layer, from the first layer on
    """

    table: pd.DataFrame
    layers: tuple[tuple[str, ...], ...]

    def summary(self) -> pd.DataFrame:
        """Return one row for each head, position and direction, over all pairs.

        Its recovered share is that of the means, so that pairs that hardly differ weigh little.
        """
        groups = self.table.groupby(KEYS, sort=False, dropna=False)
        means = groups[["clean", "corrupt", "patched"]].mean()
        means["pairs"] = groups.size()
        means["recovered"] = recovered(means["patched"], means["clean"], means["corrupt"])
        return means.reset_index()

    def picture(self, direction: str | None = None, through: str | None = None) -> str:
        """Draw the recovered shares; return SVG.

        A square a head, layers down and heads across; with positions a row a head and a column a
        token.
        """
        rows = self.summary()
        rows = _only(rows, "direction", direction)
        rows = _only(rows, "through", through)
        first = rows.iloc[0]
        middle = 1.0 if first["direction"] == "noise" else 0.0
        by_position = rows["position"].notna().any()
        grid = position_grid(rows, middle) if by_position else head_grid(rows, self.layers, middle)
        through = f" through {first['through']}" if first["through"] else ""
        return grid.svg(
            f"{first['what']}{through}, {first['direction']}: recovered share of the "
            f"{first['metric']}"
        )

    def save(self, path: str | Path, **choices: str) -> None:
        """Write the picture as .svg, or the table as .csv; choices are those of `picture`."""
        path = Path(path)
        if path.suffix not in (".svg", ".csv"):
            raise InputError(f"{path.name} was asked for; a study is saved as .svg or .csv")
        table = path.suffix == ".csv"
        text = self.table.to_csv(index=False) if table else self.picture(**choices)
        write_whole(path, lambda part: _write(part, text))

    def _repr_html_(self) -> str:
        names = self.table[["direction", "through"]].drop_duplicates().itertuples(index=False)
        return "".join(self.picture(direction, through) for direction, through in names)


def recovered(patched: pd.Series, clean: pd.Series, corrupt: pd.Series) -> pd.Series:
    """Return the share of the difference between the inputs that a patch brings (back)."""
    return (patched - corrupt) / (clean - corrupt)


def _only(rows: pd.DataFrame, column: str, wanted: str | None) -> pd.DataFrame:
    present = list(dict.fromkeys(rows[column]))
    chosen = present[0] if wanted is None else wanted
    if chosen not in present:
        raise PickError(
            f"no {column} {chosen!r} was studied; there is {', '.join(map(repr, present))}"
        )
    return rows[rows[column] == chosen]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
