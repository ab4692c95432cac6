"""attention-atlas layout: lay out all queries and keys of every head."""

import json
import math
import sys
from typing import Annotated

import typer

from attention_atlas.cli.arguments import Folder, Seed
from attention_atlas.engine.options import EngineOptions
from attention_atlas.layout.methods import METHODS

COLUMNS = {
    "strongest": "map.strongest",
    "by chance": "chance",
    "visible": "map.visible",
    "overlap": "map.overlap",
    "like": "map.like",
}


def layout(
    atlas: Folder,
    running: EngineOptions,
    method: Annotated[str, typer.Option(help=f"The method: {', '.join(METHODS)}.")] = "umap",
    dims: Annotated[int, typer.Option(min=2, max=3)] = 2,
    joint: Annotated[
        str,
        typer.Option(
            help="What near means: attention (near is attended), or a way of the AttentionViz "
            "paper: scale, translate, raw, lift."
        ),
    ] = "attention",
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens a head.")] = 5000,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    all_tokens: Annotated[
        bool, typer.Option(help="Place the tokens beyond --tokens on the map too.")
    ] = False,
    heads: Annotated[
        list[str] | None, typer.Option("--head", help="With --all-tokens: of these heads only.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print fidelity as JSON.")] = False,
) -> None:
    """Lay out all queries and keys of every head of an atlas. Resumes if interrupted."""
    from attention_atlas.atlas import open_atlas
    from attention_atlas.engine.engines import find_engine

    opened = open_atlas(atlas)
    placed = opened.layout(
        method, dims, joint=joint, tokens=tokens, seed=seed, device=device,
        engine=find_engine(running),
    )  # fmt: skip
    if "not laid out" in placed.options:
        print(f"not laid out: {placed.options['not laid out']}", file=sys.stderr)
    if all_tokens:
        for trouble in opened.place_all(method, dims, heads=heads, device=device):
            print(trouble, file=sys.stderr)
    figures = {head: placed.of(head)[1] for group in placed.groups.values() for head in group.heads}
    if as_json:
        print(json.dumps(figures, indent=1))
        return
    print(f"{'head':14}" + "".join(f"{title:>11}" for title in COLUMNS))
    for head, figure in figures.items():
        numbers = (figure.get(name, math.nan) for name in COLUMNS.values())
        print(f"{head:14}" + "".join(f"{number:11.3f}" for number in numbers))
