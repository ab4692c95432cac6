"""Which normalisation gives maps that are both faithful and readable?

    python -m benchmarks.layout_joints TEXT [--picture docs/layouts.png]

For each: the rank correlation of distance and dot product in the full space and on the UMAP map,
and the overlap: how many of a point's neighbours on the map are of the other kind, 1 when queries
and keys are perfectly mixed, 0 when they are apart. MiniLM, every sixth head.
"""

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

from attention_atlas.layout.fidelity import Dots, TokenInputs, correlation, neighbourhood
from attention_atlas.layout.joint import JOINTS, Joint, join
from attention_atlas.layout.methods import lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from benchmarks.layout_data import text_vectors

SHOWN = 7  # the head in the picture, of those looked at


def variants(dots: Dots) -> dict[str, Joint]:
    fitted = {name: join(dots.queries, dots.keys, name) for name in JOINTS}
    named = {f"{name}, {joint.metric}": joint for name, joint in fitted.items()}
    for name in ("translate", "scale"):
        joint = fitted[name]
        named[f"{name}, euclidean"] = Joint(name, "euclidean", joint.c, joint.shift, joint.radius)
    return named


def overlap(places: Tensor) -> Tensor:
    count = places.shape[1] // 2
    near = find_neighbours(places, 15, "euclidean").index
    is_key = torch.arange(places.shape[1]) >= count
    return (is_key[near] != is_key[None, :, None]).float().mean((1, 2)) * 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    queries, keys, inputs = text_vectors(asked.text, asked.tokens)
    dots = Dots(queries[::6], keys[::6], TokenInputs(inputs, inputs))
    maps, rows = {}, {}
    for name, joint in variants(dots).items():
        points = as_points(joint.points(dots.queries, dots.keys), joint.metric)
        near = find_neighbours(points, 14, joint.metric)
        maps[name] = places = lay_out(points, "umap", 2, near)
        trust, kept = neighbourhood(points, places, torch.arange(0, places.shape[1], 5))
        figures = {
            "correlation, full space": correlation(dots, points),
            "correlation, map": correlation(dots, places),
            "overlap": overlap(places),
            "trust": trust,
            "kept": kept,
        }
        rows[name] = {what: round(float(value.mean()), 3) for what, value in figures.items()}
        print(name, json.dumps(rows[name]), flush=True)
    out = Path(__file__).parent / "results" / "layout-joints.json"
    out.write_text(json.dumps(rows, indent=1) + "\n")
    if asked.picture:
        draw(maps, asked.tokens, asked.picture)


def draw(maps: dict[str, Tensor], tokens: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(maps), figsize=(3 * len(maps), 3.2))
    for axis, (name, places) in zip(axes, maps.items(), strict=True):
        for part, colour in ((slice(0, tokens), "#5FB96C"), (slice(tokens, None), "#E3378F")):
            axis.scatter(*places[SHOWN, part].t(), s=2, c=colour, linewidths=0)
        axis.set(title=name, xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
