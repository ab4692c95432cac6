"""How are recovered shares drawn? Squares in blue (towards the clean input) and orange (away).

Grey is what a patch that changes nothing gives: 0 in the corrupt input, 1 in the clean one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

CELL, LETTER = 18, 7  # pixels
NONE, POSITIVE, NEGATIVE = (246, 246, 247), (33, 102, 172), (198, 92, 20)


@dataclass(frozen=True)
class Grid:
    """Squares with a value each, in named rows and columns."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[tuple[int, int], tuple[str, float]]  # (row, column) → name, value
    middle: float = 0.0  # the value that is grey

    def svg(self, caption: str) -> str:
        """Draw the grid with its caption and a key of colours; return SVG."""
        apart = [abs(value - self.middle) for _, value in self.values.values()]
        top = max([size for size in apart if np.isfinite(size)], default=0.0) or 1.0
        left = 12 + LETTER * max((len(name) for name in self.rows), default=0)
        above = 48 + (LETTER * max((len(name) for name in self.columns), default=0) * 3) // 4
        squares = [
            f'<rect x="{left + column * CELL}" y="{above + row * CELL}" width="{CELL - 1}" '
            f'height="{CELL - 1}" fill="{_colour((value - self.middle) / top)}">'
            f"<title>{escape(name)}: {value:.3g}</title></rect>"
            for (row, column), (name, value) in self.values.items()
        ]
        labels = [
            f'<text x="{left - 6}" y="{above + row * CELL + 13}" text-anchor="end">{escape(name)}'
            "</text>"
            for row, name in enumerate(self.rows)
        ]
        labels += [
            f'<text transform="translate({left + column * CELL + 12} {above - 4}) rotate(-50)">'
            f"{escape(name)}</text>"
            for column, name in enumerate(self.columns)
        ]
        key = f"orange {self.middle - top:.2g}, grey {self.middle:g}, blue {self.middle + top:.2g}"
        if len(self.values) < len(self.rows) * len(self.columns):
            key += "; no square: not patched"
        width = max(left + len(self.columns) * CELL + 30, 8 + LETTER * max(len(caption), len(key)))
        height = above + len(self.rows) * CELL + 12
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" role="img">'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
            f'<text x="8" y="16" font-size="12" font-weight="bold">{escape(caption)}</text>'
            f'<text x="8" y="32" fill="#5b5f66">{escape(key)}</text>'
            f"{''.join(labels)}{''.join(squares)}</svg>\n"
        )


def head_grid(rows: pd.DataFrame, layers: Sequence[Sequence[str]], middle: float) -> Grid:
    """Return layers down and heads across."""
    by_head = dict(zip(rows["head"], rows["recovered"], strict=True))
    values = {
        (row, column): (name, float(by_head[name]))
        for row, names in enumerate(layers)
        for column, name in enumerate(names)
        if name in by_head
    }
    widest = max((len(names) for names in layers), default=0)
    titles = [names[0].rpartition("H")[0] for names in layers]
    return Grid(titles, [f"H{head}" for head in range(widest)], values, middle)


def position_grid(rows: pd.DataFrame, middle: float) -> Grid:
    """Return heads down and tokens across."""
    heads = list(dict.fromkeys(rows["head"]))
    places = rows[["position", "token"]].drop_duplicates("position").sort_values("position")
    columns = {position: column for column, position in enumerate(places["position"])}
    values = {
        (heads.index(row["head"]), columns[row["position"]]): (
            f"{row['head']} at {row['position']} {row['token']}",
            float(row["recovered"]),
        )
        for row in rows.to_dict("records")
    }
    titles = [
        f"{place['position']} {place['token']}".replace("Ġ", " ")
        for place in places.to_dict("records")
    ]
    return Grid(heads, titles, values, middle)


def _colour(share: float) -> str:
    if not np.isfinite(share):
        return "#ffffff"
    light, full = np.array(NONE), np.array(POSITIVE if share >= 0 else NEGATIVE)
    red, green, blue = (int(part) for part in light + (full - light) * min(abs(share), 1.0))
    return f"#{red:02x}{green:02x}{blue:02x}"
