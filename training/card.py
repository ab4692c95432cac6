"""What should a user know about a built-in model? Its README.md and the picture of its training.

    python -m training.card MODELS

fills training/cards/*.md with figures.json and draws curve.csv, so the two cannot disagree.
"""

import argparse
import csv
import json
from pathlib import Path
from string import Template
from typing import Any

CARDS = Path(__file__).with_name("cards")
MODELS = ("gpt", "bert", "vit")
SHARES = ("accuracy", "induction", "previous_token", "chance")
COLOURS = ("#888888", "#0072b2", "#d55e00", "#009e73", "#cc79a7")
WIDTH, HEIGHT, MARGIN = 640, 240, 40


def said(name: str, value: Any) -> str:
    """A figure as a reader wants it."""
    if isinstance(value, dict):
        return "\n".join(f"| {kind} | {said('accuracy', share)} |" for kind, share in value.items())
    if isinstance(value, int):
        return f"{value:,}"
    if name.endswith("accuracy") or name == "chance":
        return f"{100 * value:.1f} %"
    return f"{value:.3f}"


def words(figures: dict[str, Any]) -> dict[str, str]:
    """Every figure by its name; for a kind of head, also which head is the strongest."""
    plain = {n: said(n, v) for n, v in figures.items() if n not in ("strongest", "heads")}
    for kind, (head, weight) in figures["strongest"].items():
        plain |= {f"{kind}_head": head, kind: f"{weight:.2f}"}
    return plain


def line(steps: list[float], values: list[float], top: float, colour: str) -> str:
    across = (WIDTH - 2 * MARGIN) / max(steps)
    up = (HEIGHT - 2 * MARGIN) / top
    places = " ".join(
        f"{MARGIN + step * across:.1f},{HEIGHT - MARGIN - value * up:.1f}"
        for step, value in zip(steps, values, strict=True)
    )
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>'


def text(x: float, y: float, words: str, colour: str = "#666666") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}">{words}</text>'


def picture(curve: dict[str, list[float]]) -> str:
    """Losses against the left axis, shares (0 to 1) against the right one."""
    steps = curve["step"]
    names = [name for name in curve if name != "step"]
    top = max(max(curve[name]) for name in names if name not in SHARES)
    base, right = HEIGHT - MARGIN, WIDTH - MARGIN
    marks = [
        f'<path d="M{MARGIN},{MARGIN}V{base}H{right}V{MARGIN}" fill="none" stroke="#999999"/>',
        text(8, MARGIN, f"{top:.1f}"),
        text(8, base, "0"),
        text(right + 6, MARGIN, "1"),
        text(right - 70, base + 18, f"step {max(steps):,.0f}"),
    ]
    for place, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        side = 1.0 if name in SHARES else top
        label = name.replace("_", " ") + (" (right)" if name in SHARES else "")
        marks.append(line(steps, curve[name], side, colour))
        marks.append(text(MARGIN + 115 * place, 20, label, colour))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11"'
    body = "\n".join(marks)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{body}\n</svg>\n'


def read_curve(path: Path) -> dict[str, list[float]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path)
    models: Path = parser.parse_args().models
    books = (CARDS / "books.md").read_text(encoding="utf-8").strip()
    for name in MODELS:
        folder = models / name
        figures = json.loads((folder / "figures.json").read_text())
        template = Template((CARDS / f"{name}.md").read_text(encoding="utf-8"))
        card = template.substitute(words(figures), books=books)
        (folder / "README.md").write_text(card, encoding="utf-8")
        (folder / "curve.svg").write_text(picture(read_curve(folder / "curve.csv")))


if __name__ == "__main__":
    main()
