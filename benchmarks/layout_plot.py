"""How do time and memory of a layout grow with its points? A plot of what `growth` measured."""

import math
from typing import Any

Row = dict[str, Any]
COLOURS = {"pca ours": "#777777", "tsne ours": "#2B7BBA", "umap ours": "#E1812C"}
PANELS = (("cpu_s", "CPU seconds"), ("peak_MB", "peak memory of the process, MB"))
WIDE, HIGH, LEFT, TOP = 300, 220, 50, 40


def growth_plot(rows: list[Row]) -> str:
    """Two panels, points across, both axes logarithmic."""
    panels = "".join(
        f'<g transform="translate({LEFT + number * (WIDE + 70)},{TOP})">{_panel(rows, *what)}</g>'
        for number, what in enumerate(PANELS)
    )
    size = f"0 0 {2 * (WIDE + 70) + LEFT} {HIGH + TOP + 40}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="system-ui, '
        f'sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>{panels}</svg>\n'
    )


def _panel(rows: list[Row], key: str, title: str) -> str:
    sizes = sorted({row["points"] for row in rows})
    values = [row[key] for row in rows]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def across(points: float) -> float:
        return WIDE * math.log(points / sizes[0]) / math.log(sizes[-1] / sizes[0])

    def up(value: float) -> float:
        return HIGH * (1 - (math.log10(value) - low) / (high - low))

    parts = [
        f'<text y="-12" font-weight="600">{title}</text>'
        f'<rect width="{WIDE}" height="{HIGH}" fill="none" stroke="#bbb"/>'
    ]
    parts += [_text(across(size), HIGH + 14, f"{size // 1000}k", "middle") for size in sizes]
    powers = range(low, high + 1)
    parts += [_text(-6, up(10**power) + 4, f"{10.0**power:g}", "end") for power in powers]
    for name, colour in COLOURS.items():
        mine = sorted((row["points"], row[key]) for row in rows if row["run"] == name)
        line = " ".join(f"{across(size):.1f},{up(value):.1f}" for size, value in mine)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        last = up(mine[-1][1])
        parts.append(_text(WIDE + 4, last + 4, name.removesuffix(" ours"), "start"))
    return "".join(parts)


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'
