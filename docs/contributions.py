"""Computes and draws what changes when weights become contributions: python -m docs.contributions

On builtin:gpt, MiniLM and SmolLM2, eight sentences each: the share on sinks of weights, of what is
moved and of contributions, and the kind of each head by either. Writes docs/contributions.svg and
prints the tables of docs/contributions.md.
"""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import attention_atlas as aa
from attention_atlas.page.answers.sinks import layer_mass
from attention_atlas.store.sinks import sinks_of
from tests.atlases import SENTENCE
from tests.places import minilm, smollm2

TEXTS = [
    SENTENCE,
    "The nurse gave the old man his medicine, because she knew that he needed it.",
    "The cat sat on the mat and the dog lay on the rug, and the cat looked at the dog.",
    "When Mary and John went to the store, John gave a drink to Mary.",
    "In the morning the farmer offered the traveller bread, cheese and a place by the fire.",
    "Why not? Because the keys to the cabinet are on the table, not in the drawer.",
    "The river rose for three days, then the bridge was closed and the village cut off.",
    "She wrote a letter, sealed it, and walked to the post office before it closed.",
]
BLUE, ORANGE, GREY = "#2B7BBA", "#E1812C", "#9aa0a8"


def models() -> dict[str, tuple[Any, Any]]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, name = smollm2().rsplit("/", 1)
    network = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    return {
        "builtin:gpt": ("builtin:gpt", None),
        "MiniLM": (minilm(), None),
        "SmolLM2": (network, tokenizer),
    }


def studied(atlas: aa.Atlas) -> list[dict[str, Any]]:
    """One row a head: shares on the layer's sinks, part of the layer, and kinds by both."""
    rows: dict[str, dict[str, Any]] = {}
    for tower in atlas.towers:
        for layer in tower.layers:
            for i in range(len(atlas)):
                weights = atlas.rows(i, layer.layer, tower.name)
                shares = atlas.moved_rows("contribution").rows(i, layer.layer, tower.name)
                norms = atlas.moved_rows("moved").rows(i, layer.layer, tower.name)
                mass, even = layer_mass(atlas, i, tower, layer)
                sinks = sinks_of(mass.mean(0), even)
                # The first row has one key and no choice.
                add(rows, f"L{layer.layer}", (weights[:, 1:], norms[:, 1:], shares[:, 1:]), sinks)
    for name, row in rows.items():
        row["head"] = name
        row |= {what: float(np.mean(row[what])) for what in ("weights", "moved", "share", "part")}
        row["by_weights"], row["by_moved"] = (most(row[kind]) for kind in ("kinds", "kinds_moved"))
    return list(rows.values())


def add(rows: dict[str, Any], layer: str, of: tuple[Any, Any, Any], sinks: Any) -> None:
    weights, norms, shares = of
    moved = norms / np.maximum(norms.sum(-1, keepdims=True), 1e-12)
    kinds, kinds_moved = (aa.classify(_square(each)) for each in (weights, moved))
    for head in range(len(weights)):
        row = rows.setdefault(f"{layer}H{head}", {
            "weights": [], "moved": [], "share": [], "part": [], "kinds": [], "kinds_moved": [],
        })  # fmt: skip
        size = np.abs(shares[head]).sum()
        row["weights"].append(weights[head][:, sinks].sum() / weights[head].sum())
        row["moved"].append(norms[head][:, sinks].sum() / max(norms[head].sum(), 1e-12))
        row["share"].append(np.abs(shares[head][:, sinks]).sum() / max(size, 1e-12))
        row["part"].append(shares[head].sum(-1).mean())
        row["kinds"].append(kinds[head].name)
        row["kinds_moved"].append(kinds_moved[head].name)


def _square(rows: Any) -> Any:
    """The first row again, since kinds are of whole inputs: it looks at itself."""
    first = np.zeros_like(rows[:, :1])
    first[:, :, 0] = 1
    return np.concatenate([first, rows], 1)


def most(names: list[str]) -> str:
    return max(sorted(set(names)), key=names.count)


def main() -> None:
    panels: list[str] = []
    for title, (model, tokenizer) in models().items():
        atlas = aa.capture(model, TEXTS, tokenizer, progress=False)
        rows = studied(atlas)
        panels.append(panel(title, rows, 360 * len(panels)))
        tell(title, rows, atlas)
    width = 360 * len(panels) + 20
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="400" ' \
        f'font-family="system-ui, sans-serif" font-size="11"><rect width="100%" height="100%" ' \
        f'fill="#FCFCFD"/>{"".join(panels)}</svg>\n'  # fmt: skip
    Path(__file__).with_name("contributions.svg").write_text(svg, encoding="utf-8")


def tell(title: str, rows: list[dict[str, Any]], atlas: aa.Atlas) -> None:
    mean = {what: np.mean([row[what] for row in rows]) for what in ("weights", "moved", "share")}
    heavy = [row for row in rows if row["weights"] > 0.5]
    changed = [row for row in rows if row["by_weights"] != row["by_moved"]]
    against = [row for row in rows if row["part"] < 0]
    print(
        f"\n## {title}: {len(rows)} heads, heads add up to layers: {atlas.output.worst_error:.1e}"
    )
    print({what: round(float(value), 3) for what, value in mean.items()})
    print("heads with > 50 % on sinks:", len(heavy), "of these moved:",
          round(float(np.mean([row["moved"] for row in heavy] or [0])), 3), "share:",
          round(float(np.mean([row["share"] for row in heavy] or [0])), 3))  # fmt: skip
    print("kind changes:", len(changed), "against the layer's output:", len(against))
    pairs = [(row["by_weights"], row["by_moved"]) for row in changed]
    for pair in sorted(set(pairs), key=lambda pair: -pairs.count(pair))[:5]:
        print("  ", " → ".join(pair), pairs.count(pair))
    for row in sorted(rows, key=lambda row: row["share"] - row["weights"])[:4]:
        figures = {key: round(row[key], 2) for key in ("weights", "moved", "share", "part")}
        print("  ", row["head"], figures, row["by_weights"], "→", row["by_moved"])


def panel(title: str, rows: list[dict[str, Any]], left: float) -> str:
    """Weight on sinks against contribution from sinks, a dot a head; below the line less comes."""
    size, x0, y0 = 290, left + 50, 50

    def place(x: float, y: float) -> tuple[float, float]:
        return x0 + size * x, y0 + size * (1 - y)

    out = [f'<text x="{x0}" y="30" font-size="14" font-weight="600">{escape(title)}</text>']
    out.append(
        f'<rect x="{x0}" y="{y0}" width="{size}" height="{size}" fill="none" stroke="#dfe1e6"/>'
    )
    (ax, ay), (bx, by) = place(0, 0), place(1, 1)
    out.append(f'<line x1="{ax}" y1="{ay}" x2="{bx}" y2="{by}" stroke="#dfe1e6"/>')
    for row in rows:
        x, y = place(row["weights"], row["share"])
        colour = ORANGE if row["part"] < 0 else BLUE
        ring = "#1b1d22" if row["by_weights"] != row["by_moved"] else "none"
        words = f"{row['head']}: {row['by_weights']} → {row['by_moved']}"
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity="0.7" '
                   f'stroke="{ring}"><title>{escape(words)}</title></circle>')  # fmt: skip
    for at in (0, 0.5, 1):
        x, y = place(at, at)
        out.append(
            f'<text x="{x}" y="{y0 + size + 15}" text-anchor="middle" fill="{GREY}">{at}</text>'
        )
        out.append(f'<text x="{x0 - 6}" y="{y + 4}" text-anchor="end" fill="{GREY}">{at}</text>')
    out.append(f'<text x="{x0 + size / 2}" y="{y0 + size + 34}" text-anchor="middle">'
               "attention on sinks</text>")  # fmt: skip
    out.append(f'<text transform="translate({x0 - 32} {y0 + size / 2}) rotate(-90)" '
               'text-anchor="middle">part of the contributions from sinks</text>')  # fmt: skip
    return "".join(out)


if __name__ == "__main__":
    main()
