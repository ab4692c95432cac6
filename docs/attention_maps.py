"""Draws the same six heads under the paper's way and ours: python -m docs.attention_maps FOLDER

FOLDER holds the atlases that `benchmarks.fidelity` captured. Lines join sixty queries with the key
that each attends to most in its input: short where near means attended.
"""

import sys
from pathlib import Path

import numpy as np

import attention_atlas as aa
from attention_atlas.layout.chunk import make_chunk
from attention_atlas.layout.plan import Options, plan
from attention_atlas.store.maps import FIGURES

HEADS = (("minilm", "L0H3"), ("minilm", "L4H7"), ("smollm2", "L2H3"), ("smollm2", "L15H1"),
         ("gpt", "L4H5"), ("vit", "L2H1"))  # fmt: skip
ROWS = {"scale": "the paper's way", "attention": "made of attention"}
QUERY, KEY = "#5FB96C", "#E3378F"


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder = Path(sys.argv[1])
    figure, axes = pyplot.subplots(2, len(HEADS), figsize=(3 * len(HEADS), 6.6))
    for column, (model, head) in enumerate(HEADS):
        atlas = aa.open(folder / f"{model}.atlas")
        pairs = strongest(atlas, head)
        for row, (joint, title) in enumerate(ROWS.items()):
            options = Options("umap", joint=joint)
            task = next(task for task in plan(atlas, options) if head in task.heads)
            made = make_chunk(atlas, options, task, (head,))
            figures = dict(zip(FIGURES, made["fidelity"][0], strict=True))
            places, count = made["places"][0].astype(float), len(task.queries)
            axis = axes[row][column]
            for query, key in pairs:
                axis.plot(*places[[query, count + key]].T, color="#888", lw=0.5, zorder=0)
            axis.scatter(*places[:count].T, s=1, color=QUERY, lw=0)
            axis.scatter(*places[count:].T, s=1, color=KEY, lw=0)
            near = f"{100 * figures['map.strongest']:.0f} of 100"
            axis.set_title(f"{model} {head}: {title}\nstrongest key near: {near}", fontsize=8)
            axis.axis("off")
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "attention-maps.png", dpi=110)


def strongest(atlas: aa.Atlas, head: str, count: int = 60) -> list[tuple[int, int]]:
    """Draw queries; returns each with the token that it attends to most, special ones apart."""
    tokens = atlas.tokens()
    start = tokens.groupby("input")["token"].min()
    drawn = np.random.default_rng(0).choice(np.flatnonzero(~tokens["special"]), count)
    pairs = []
    for token in drawn.tolist():
        number, first = int(tokens["input"][token]), int(start[tokens["input"][token]])
        row = atlas.weights(number, head, rows=[token - first])[0]
        row = np.where(tokens["special"][first : first + len(row)], -1, row)
        pairs.append((token, first + int(row.argmax())))
    return pairs


if __name__ == "__main__":
    main()
