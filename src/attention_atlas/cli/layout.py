"""attention-atlas layout: lay out all queries and keys of every head."""

import json
import sys
from typing import Annotated

import typer

from attention_atlas.cli.arguments import Folder
from attention_atlas.layout.methods import METHODS


def layout(
    atlas: Folder,
    method: Annotated[str, typer.Option(help=f"The method: {', '.join(METHODS)}.")] = "umap",
    dims: Annotated[int, typer.Option(min=2, max=3)] = 2,
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens a head.")] = 5000,
    seed: int = 0,
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

    opened = open_atlas(atlas)
    placed = opened.layout(method, dims, tokens=tokens, seed=seed, device=device)
    if all_tokens:
        for trouble in opened.place_all(method, dims, heads=heads, device=device):
            print(trouble, file=sys.stderr)
    figures = {head: placed.of(head)[1] for group in placed.groups.values() for head in group.heads}
    if as_json:
        print(json.dumps(figures, indent=1))
        return
    print(f"{'head':14} {'correlation':>12} {'trustworthy':>12} {'kept':>8}")
    for head, figure in figures.items():
        print(
            f"{head:14} {figure['map.correlation']:12.3f} {figure['map.trust']:12.3f} "
            f"{figure['map.kept']:8.3f}"
        )
