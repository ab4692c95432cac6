"""attention-atlas measure: score every head of an atlas and name its kind."""

import json
from pathlib import Path
from typing import Annotated

import typer

from attention_atlas.cli.arguments import Folder, Seed
from attention_atlas.cli.talk import say
from attention_atlas.engine.options import EngineOptions
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords


def measure(
    atlas: Folder,
    loading: Loading,
    running: EngineOptions,
    model: Annotated[
        str | None, typer.Option(help="The captured model; adds scores that need it.")
    ] = None,
    conllu: Annotated[
        Path | None, typer.Option(help="A CoNLL-U file whose sentences are the inputs.")
    ] = None,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Measure every row of long inputs too.")
    ] = False,
    without_sinks: Annotated[
        bool,
        typer.Option(
            "--without-sinks", help="Measure weights without the sinks of each input as well."
        ),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Measure again.")] = False,
    seed: Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the measures as JSON.")] = False,
) -> None:
    """Score every head of an atlas and name its kind. Keeps what is already measured."""
    from attention_atlas.atlas import open_atlas
    from attention_atlas.engine.engines import find_engine
    from attention_atlas.studies.measure import measure as run

    opened = open_atlas(atlas)
    asked = again or all_rows or model is not None or conllu is not None
    if not asked and opened.scores(without_sinks) is not None:
        say(f"{atlas} is measured already; to measure it again, add --again")
    scores = run(
        opened, model, conllu=conllu, all_rows=all_rows, without_sinks=without_sinks, again=again,
        seed=seed, engine=find_engine(running), **keywords(loading),
    )  # fmt: skip
    if as_json:
        print(json.dumps(scores.measures, indent=1, ensure_ascii=False))
        return
    for name, words in scores.measures.items():
        print(f"{name:20} {words['formula']}  [{words['source']}]")
