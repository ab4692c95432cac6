"""How does a command show its page? The options of the server, and its start."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_atlas.cli.talk import say
from attention_atlas.names.options import option

if TYPE_CHECKING:
    from attention_atlas.page.live.answers import Models
    from attention_atlas.page.wire.about import StoryStep
    from attention_atlas.store.reader import StoredAtlas


@dataclass(frozen=True)
class Hosting:
    """Where the server listens, and whether it opens a browser."""

    host: str = option("127.0.0.1", "Address to listen on; other than this machine needs a token.")
    port: int | None = option(None, "8642, or a free one, if unset.", min=0, max=65535)
    browser: bool = option(True, "Open a browser.")


def show(
    atlases: "list[StoredAtlas]",
    hosting: Hosting,
    models: "Models" = (),
    read_only: bool = False,
    story: "Sequence[StoryStep]" = (),
) -> None:
    """Serve atlases until interrupted."""
    from attention_atlas.page.hosts.launch import serve

    serve(
        atlases, hosting.host, hosting.port, browser=hosting.browser, say=say, models=models,
        read_only=read_only, story=story,
    )  # fmt: skip
