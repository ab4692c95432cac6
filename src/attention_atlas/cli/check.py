"""attention-atlas check: can this model be captured exactly, and are edits of it true?"""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from attention_atlas.cli.arguments import Model
from attention_atlas.cli.talk import edit_table, receipt_table
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords


def check(
    model: Model,
    loading: Loading,
    inputs: Annotated[
        str | None,
        typer.Argument(metavar="[INPUTS]", help="Inputs to check it on; a few samples if unset."),
    ] = None,
    edits: Annotated[
        bool, typer.Option("--edits", help="Check edits of the model instead of its capture.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the receipt as JSON.")] = False,
) -> None:
    """Check that a model can be captured exactly; prints the receipt, exits 0 if so, else 1."""
    from attention_atlas.store.manifest import plain

    if edits:
        from attention_atlas.edits.prove.receipt import check_edits

        made = check_edits(model, inputs, **keywords(loading))
        table, good = edit_table(made), made.holds
        checks = [{**asdict(each), "holds": each.holds} for each in made.checks]
        raw: dict[str, Any] = {**asdict(made), "checks": checks, "holds": good}
    else:
        from attention_atlas.record.prove.check import check as make

        receipt = make(model, inputs, **keywords(loading))
        table, good = receipt_table(receipt), receipt.exact
        raw = {**asdict(receipt), "exact": good}
    print(json.dumps(plain(raw), indent=1) if as_json else table)
    raise typer.Exit(0 if good else 1)
