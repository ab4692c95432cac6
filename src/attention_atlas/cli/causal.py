"""attention-atlas causal: exchange every head of an atlas's model and see what the loss does."""

from typing import Annotated, Literal

import typer

from attention_atlas.cli.arguments import AsJson, Folder, Seed
from attention_atlas.cli.talk import say
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords


def causal(
    atlas: Folder,
    loading: Loading,
    model: Annotated[str, typer.Option(help="The captured model.")],
    by: Annotated[
        Literal["zero", "mean", "resample"],
        typer.Option(help="What a head moves instead: nothing, its mean, or that of other inputs."),
    ] = "resample",
    budget: Annotated[
        float | None, typer.Option(help="Estimate within about so many plain passes.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Measure how much each head matters to what the model predicts; keeps it as scores."""
    from attention_atlas.studies.causal import causal_scores

    table = causal_scores(
        str(atlas), model, by=by, budget=budget, seed=seed, **keywords(loading)
    ).sort_values("effect", ascending=False, kind="stable")
    for note in table.attrs["notes"]:
        say(note)
    if as_json:
        print(table.to_json(orient="records", indent=1, force_ascii=False))
    elif as_csv:
        print(table.to_csv(index=False), end="")
    else:
        shown = table.drop(columns=["corpus_low", "corpus_high"])
        print(shown.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
