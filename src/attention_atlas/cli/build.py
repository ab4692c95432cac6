"""attention-atlas build: capture, measure and lay out in one command."""

from typing import Annotated

import typer

from attention_atlas.cli.arguments import Inputs, Model, Output, Overwrite
from attention_atlas.cli.talk import resumable, say, summary
from attention_atlas.engine.options import EngineOptions
from attention_atlas.layout.methods import METHODS
from attention_atlas.models.loading import Loading
from attention_atlas.names.errors import InputError
from attention_atlas.names.options import keywords
from attention_atlas.record.write.options import Capturing, Reading


def build(
    model: Model,
    inputs: Inputs,
    output: Output,
    reading: Reading,
    capturing: Capturing,
    loading: Loading,
    running: EngineOptions,
    method: Annotated[
        str, typer.Option(help=f"{', '.join(METHODS)}; several with commas.")
    ] = "umap",
    dims: Annotated[str, typer.Option(help="2, 3 or 2,3.")] = "2",
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens on a map.")] = 5000,
    overwrite: Overwrite = False,
) -> None:
    """Capture MODEL over INPUTS, lay out and measure every head. Resumes if interrupted."""
    from attention_atlas.engine.engines import find_engine
    from attention_atlas.studies.build import Wanted
    from attention_atlas.studies.build import build as run

    wanted = Wanted(
        _words(method), _numbers(dims), tokens, capturing.seed, loading.device, find_engine(running)
    )
    options = {**keywords(reading), **keywords(capturing), **keywords(loading)}
    del options["seed"], options["device"]
    with resumable(output):
        atlas = run(model, inputs, output, wanted, overwrite=overwrite, **options)
    say(f"{summary(atlas)}; see it with: attention-atlas serve {output}")
    print(output)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in _words(text)]
    except ValueError:
        raise InputError(f"--dims {text!r} is not a number; give 2, 3 or 2,3") from None
