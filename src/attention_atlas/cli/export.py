"""attention-atlas export: write an atlas as a page, a figure or a folder."""

from pathlib import Path
from typing import Annotated

import typer

from attention_atlas.cli.arguments import Exact, Folder


def export(
    atlas: Folder,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="page.html, figure.svg, figure.png or folder/.")
    ],
    exact: Exact = False,
) -> None:
    """Write an atlas as one HTML file, a figure, or a folder for any web host."""
    from attention_atlas.store.reader import StoredAtlas

    opened = StoredAtlas.open(atlas)
    if output.suffix:
        from attention_atlas.page.answers.maps import map_files
        from attention_atlas.page.hosts.views import first_view, matrix_view

        mapped = output.suffix == ".html" and map_files(opened)
        (matrix_view if mapped else first_view)(opened).save(output, exact=exact)
    else:
        from attention_atlas.page.hosts.export import save_folder

        save_folder(output, opened, exact=exact)
    print(output)
