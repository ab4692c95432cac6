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
) -> None:
    """Show atlases in the browser; with another --host, the link has a token."""
    from attention_atlas.page.live.model import LiveModel, give_out
    from attention_atlas.store.reader import StoredAtlas

    opened = [StoredAtlas.open(path) for path in atlases]
    live = [LiveModel(name, **keywords(loading)) for name in model or ()]
    show(opened, hosting, give_out(live, opened))
