"""attention-atlas serve: show atlases in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from attention_atlas.cli.hosting import Hosting, show
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords


def serve(
    atlases: Annotated[list[Path], typer.Argument(metavar="ATLAS...", help="Atlas folders.")],
    hosting: Hosting,
    loading: Loading,
    model: Annotated[
        list[str] | None,
        typer.Option(help="The atlas's model, to add texts with; may be repeated."),
    ] = None,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Show what is there; compute, add and edit nothing."),
    ] = False,
) -> None:
    """Show atlases in the browser; with another --host, the link has a token."""
    from attention_atlas.names.errors import InputError
    from attention_atlas.page.live.model import LiveModel, give_out
    from attention_atlas.store.reader import StoredAtlas

    if read_only and model:
        raise InputError("a read-only server uses no model; leave out --model or --read-only")
    opened = [StoredAtlas.open(path) for path in atlases]
    live = [LiveModel(name, **keywords(loading)) for name in model or ()]
    show(opened, hosting, give_out(live, opened), read_only)
