"""attention-atlas view: run a model on one text and show its attention."""

from pathlib import Path
from typing import Annotated

import typer

from attention_atlas.cli.arguments import Exact, Model
from attention_atlas.cli.hosting import Hosting, show
from attention_atlas.cli.talk import say, summary
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords


def view(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A text, or the file of a picture.")],
    hosting: Hosting,
    loading: Loading,
    text_b: Annotated[
        str | None, typer.Argument(metavar="[TEXT_B]", help="A second text, or the target.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write page.html, figure.svg or figure.png instead.")
    ] = None,
    exact: Exact = False,
) -> None:
    """Run MODEL on one TEXT or picture and show its attention."""
    from attention_atlas.models.media import IMAGE_SUFFIXES
    from attention_atlas.record.write.capture import capture

    given: object = {"text": text} if text_b is None else {"text": text, "second": text_b}
    if text.lower().endswith(IMAGE_SUFFIXES) and Path(text).is_file():
        given = Path(text) if text_b is None else {"image": text, "text": text_b}
    atlas = capture(model, [given], **keywords(loading))
    say(summary(atlas))
    if save is None:
        show([atlas], hosting)
        return
    from attention_atlas.page.hosts.views import first_view

    print(first_view(atlas).save(save, exact=exact))
