"""attention-atlas probes: make pictures with a known value at every place."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from attention_atlas.cli.arguments import Seed
from attention_atlas.cli.talk import say

Probes = Literal["hue", "brightness", "gratings", "shapes"]


def probes(
    kind: Annotated[Probes, typer.Argument(metavar="KIND", help="The value that is known.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    size: Annotated[int, typer.Option(min=14, max=2048, help="Pixels a side.")] = 224,
    seed: Seed = 0,
) -> None:
    """Make pictures with a known value at every place: hue, brightness, gratings or shapes."""
    from attention_atlas.images.probes import write_probes

    count = write_probes(kind, output, size, seed)
    say(f"{count} pictures; to capture them, run: attention-atlas build MODEL {output} -o x.atlas")
    print(output)
