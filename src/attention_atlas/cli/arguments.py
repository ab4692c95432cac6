"""Which arguments do several commands share?"""

from pathlib import Path
from typing import Annotated

import typer

from attention_atlas.names.options import MOST_SEED

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A hub id, a folder, a .gguf file or builtin:gpt.")
]
Inputs = Annotated[
    str, typer.Argument(metavar="INPUTS", help="A file, a folder of pictures or a quoted text.")
]
Folder = Annotated[Path, typer.Argument(metavar="ATLAS", help="An atlas folder.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="The atlas folder to write.")]
Seed = Annotated[
    int, typer.Option(min=0, max=MOST_SEED, help="For everything that is drawn at random.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing atlas.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Exact = Annotated[bool, typer.Option("--exact", help="Put whole rows and vectors into the page.")]
