"""A table and a plot of what `benchmarks.bertviz` measured."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_COLOURS = {"bertviz": "#E1812C", "atlas": "#2B7BBA"}
_NAMES = {"bertviz": "BertViz 1.4.1", "atlas": "Attention Atlas"}
_COLUMNS = (
    ("page_mb", "page, MB", ".2f"),
    ("memory_mb", "memory, MB", ".0f"),
    ("make_s", "made in, s", ".1f"),
    ("paint_ms", "painted, ms", ".0f"),
    ("whole_ms", "whole, ms", ".0f"),
    ("hover_ms", "hover, ms", ".0f"),
    ("load", "load", ".0f"),
)


def write_report(rows: list[Row], folder: Path) -> None:
    """bertviz.md and bertviz.svg beside the numbers."""
    (folder / "bertviz.md").write_text(_table(rows), encoding="utf-8")
    (folder / "bertviz.svg").write_text(_plot(rows), encoding="utf-8")


def _table(rows: list[Row]) -> str:
    last = rows[-1]
    lines = [
        "# BertViz and Attention Atlas, side by side",
        "",
        f"{last['date']}; {last['machine']}; `python -m benchmarks.bertviz`. Same arrays, same "
        "browser, pages opened from disk. `load` is the machine's load average at the end of a "
        "case: above the number of cores, its times are too long and not to be relied on. "
        "What each column means is in `bertviz.py`.",
        "",
        "![time to the first painted frame](bertviz.svg)",
        "",
        "| view | heads | tokens | tool | " + " | ".join(name for _, name, _ in _COLUMNS) + " |",
        "|---|---|---|---|" + "---|" * len(_COLUMNS),
    ]
    for row in sorted(rows, key=_order):
        cells = [_cell(row, key, form) for key, _, form in _COLUMNS]
        where = f"{row['view']} | {row['layers']}×{row['heads']} | {row['tokens']}"
        lines.append(f"| {where} | {_NAMES[row['tool']]} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_ratios(rows), ""])


def _order(row: Row) -> tuple[Any, ...]:
    return row["view"], row["layers"], row["tokens"], row["tool"] == "atlas"


def _cell(row: Row, key: str, form: str) -> str:
    value = row.get(key)
    if value is not None:
        return format(value, form)
    if key == "paint_ms" and "trouble" in row:
        return f"never: {row['trouble'].partition(' (')[0]}"
    return "–"


def _ratios(rows: Iterable[Row]) -> list[str]:
    """How many times sooner, where both were shown."""
    by = {(r["view"], r["layers"], r["tokens"], r["tool"]): r for r in rows}
    lines = [
        "| view | heads | tokens | paints sooner | is whole sooner | hovers sooner |",
        "|---|---|---|---|---|---|",
    ]
    for view, layers, tokens, tool in sorted(by):
        theirs = by.get((view, layers, tokens, "bertviz"))
        ours = by[view, layers, tokens, tool]
        if tool != "atlas" or theirs is None:
            continue
        keys = ("paint_ms", "whole_ms", "hover_ms")
        times = " | ".join(_times(theirs.get(key), ours.get(key)) for key in keys)
        lines.append(f"| {view} | {layers}×12 | {tokens} | {times} |")
    return lines


def _times(theirs: float | None, ours: float | None) -> str:
    return "–" if not theirs or not ours else f"{theirs / ours:.1f}×"


# The plot: tokens across, milliseconds up, both logarithmic ---------------------------------------

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 340, 240, 60, 40, 60
_X = (16, 2048)
_Y = (100, 400_000)


def _plot(rows: list[Row]) -> str:
    panels = [(view, layers) for view in ("model", "head") for layers in (6, 12)]
    width = _LEFT + 2 * (_WIDTH + _GAP)
    height = 2 * (_HEIGHT + _TOP + 40) + 20
    body = "".join(
        _panel(rows, view, layers, _LEFT + (at % 2) * (_WIDTH + _GAP),
               _TOP + (at // 2) * (_HEIGHT + _TOP + 40))
        for at, (view, layers) in enumerate(panels)
    )  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="11"><rect width="100%" height="100%" '
        f'fill="#fff"/>{body}</svg>\n'
    )


def _panel(rows: list[Row], view: str, layers: int, x: int, y: int) -> str:
    parts = [
        f'<text x="{x}" y="{y - 12}" font-weight="600">{view} view, {layers}×12 heads: '
        "ms to the first painted frame</text>",
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#bbb"/>',
    ]
    for tokens in (16, 64, 128, 256, 512, 2048):
        at = x + _place(tokens, *_X) * _WIDTH
        parts.append(
            f'<text x="{at:.0f}" y="{y + _HEIGHT + 14}" text-anchor="middle">{tokens}</text>'
        )
    for power in range(2, 6):
        at = y + _HEIGHT - _place(10**power, *_Y) * _HEIGHT
        parts.append(f'<path d="M{x} {at:.0f}h{_WIDTH}" stroke="#eee"/>')
        parts.append(f'<text x="{x - 6}" y="{at + 4:.0f}" text-anchor="end">{10**power:,}</text>')
    for line, tool in enumerate(("bertviz", "atlas")):
        mine = [r for r in rows if (r["view"], r["layers"], r["tool"]) == (view, layers, tool)]
        parts.append(_line(sorted(mine, key=lambda row: row["tokens"]), tool, x, y))
        parts.append(
            f'<text x="{x + 10}" y="{y + 18 + 14 * line}" fill="{_COLOURS[tool]}">'
            f"{_NAMES[tool]}</text>"
        )
    return "".join(parts)


def _line(rows: list[Row], tool: str, x: int, y: int) -> str:
    points = [
        (x + _place(row["tokens"], *_X) * _WIDTH, y + _HEIGHT - _place(ms, *_Y) * _HEIGHT)
        for row in rows
        if (ms := row.get("paint_ms"))
    ]
    joined = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{_COLOURS[tool]}"/>' for a, b in points
    )
    stroke = f'fill="none" stroke="{_COLOURS[tool]}" stroke-width="2"'
    return f'<polyline points="{joined}" {stroke}/>{dots}'


def _place(value: float, low: float, high: float) -> float:
    inside = min(max(value, low), high)
    return math.log(inside / low) / math.log(high / low)
