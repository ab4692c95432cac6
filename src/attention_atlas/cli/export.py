"""attention-atlas export: write an atlas as a page, a figure, a folder or files of other tools."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from attention_atlas.cli.arguments import Exact, Folder


def export(
    atlas: Folder,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUTPUT",
            help="page.html, figure.svg, figure.png, weights.npz, weights.safetensors or folder/.",
        ),
    ],
    exact: Exact = False,
    format: Annotated[
        Literal["page", "headvis"],
        typer.Option(help="What a folder holds: our page, or files for HeadVis."),
    ] = "page",
    tower: Annotated[
        str | None, typer.Option(help="For HeadVis: which tower, if there are several.")
    ] = None,
) -> None:
    """Write an atlas as one HTML file, a figure, arrays, or a folder for any web host."""
    from attention_atlas.store.reader import StoredAtlas

    opened = StoredAtlas.open(atlas)
    if format == "headvis":
        from attention_atlas.ways.headvis_write import to_headvis

        to_headvis(opened, output, tower=tower)
    elif output.suffix in (".npz", ".safetensors"):
        from attention_atlas.ways.plain_arrays import to_arrays

        to_arrays(opened, output)
    elif output.suffix:
        from attention_atlas.page.answers.maps import map_files
        from attention_atlas.page.hosts.views import first_view, matrix_view

        mapped = output.suffix == ".html" and map_files(opened)
        (matrix_view if mapped else first_view)(opened).save(output, exact=exact)
    else:
        from attention_atlas.page.hosts.export import save_folder

        save_folder(output, opened, exact=exact)
    print(output)
