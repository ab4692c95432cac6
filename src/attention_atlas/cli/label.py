"""attention-atlas label: name what each patch shows."""

import json
from typing import Annotated

import typer

from attention_atlas.cli.arguments import Folder
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords


def label(
    atlas: Folder,
    model: Annotated[str, typer.Option(help="A segmentation model: a hub id or a folder.")],
    loading: Loading,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Name what each patch of an atlas shows by a segmentation model, to colour maps."""
    from attention_atlas.studies.measure import label as run

    counts = run(atlas, model, **keywords(loading))
    if as_json:
        print(json.dumps(counts, indent=1, ensure_ascii=False))
        return
    for name, count in counts.items():
        print(f"{count:8} {name}")
