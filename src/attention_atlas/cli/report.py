"""attention-atlas report: write what is known of every head as one page."""

from pathlib import Path
from typing import Annotated

import typer

from attention_atlas.cli.arguments import Folder


def report(
    atlas: Folder,
    output: Annotated[
        Path,
        typer.Argument(metavar="OUTPUT", help="report.html, or report.pdf (needs Chromium)."),
    ],
    without_sinks: Annotated[
        bool,
        typer.Option("--without-sinks", help="Kinds and scores without the sinks of each input."),
    ] = False,
) -> None:
    """Write what is known of every head as one page for reading and printing."""
    from attention_atlas.atlas import open_atlas
    from attention_atlas.measure.report import report as make
    from attention_atlas.measure.report import write_report

    opened = open_atlas(atlas)
    scores = opened.measure(without_sinks=without_sinks)
    if output.suffix == ".pdf":
        from attention_atlas.page.hosts.figure import print_page

        print_page(output, make(opened, scores, without_sinks))
    else:
        write_report(opened, output, without_sinks)
    print(output)
