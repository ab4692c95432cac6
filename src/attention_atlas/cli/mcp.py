"""attention-atlas mcp: answer an agent."""

from typing import Annotated

import typer

from attention_atlas.cli.arguments import Folder
from attention_atlas.cli.talk import say
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords


def mcp(
    atlas: Folder,
    loading: Loading,
    model: Annotated[
        str | None, typer.Option(help="The atlas's model, to edit and test with.")
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Serve the page too, so that links of pictures open.")
    ] = False,
) -> None:
    """Answer an agent over the Model Context Protocol on stdin and stdout."""
    from attention_atlas.names.errors import InputError
    from attention_atlas.page.live.model import LiveModel
    from attention_atlas.store.reader import StoredAtlas

    try:
        from attention_atlas.page.agents.server import make_server
    except ImportError as problem:
        raise InputError(
            "agents need one more package; run: pip install attention-atlas[mcp]"
        ) from problem
    from attention_atlas.page.agents.bench import AgentBench

    opened = StoredAtlas.open(atlas)
    live = None if model is None else LiveModel(model, **keywords(loading))
    if not page:
        make_server(AgentBench(opened, live)).run("stdio")
        return
    from attention_atlas.page.hosts.launch import start

    with start([opened]) as running:
        say(f"the page is at {running.url}")
        make_server(AgentBench(opened, live, running.url)).run("stdio")
