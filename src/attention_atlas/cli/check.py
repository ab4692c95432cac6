"""attention-atlas check: can this model be captured exactly?"""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from attention_atlas.cli.arguments import Model
from attention_atlas.cli.talk import receipt_table
from attention_atlas.models.loading import Loading
from attention_atlas.names.options import keywords


def check(
    model: Model,
    loading: Loading,
    inputs: Annotated[
        str | None,
        typer.Argument(metavar="[INPUTS]", help="Inputs to check it on; a few samples if unset."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the receipt as JSON.")] = False,
) -> None:
    """Check that a model can be captured exactly; prints the receipt, exits 0 if so, else 1."""
    from attention_atlas.record.prove.check import check as make
    from attention_atlas.store.manifest import plain

    receipt = make(model, inputs, **keywords(loading))
    if as_json:
        print(json.dumps(plain({**asdict(receipt), "exact": receipt.exact}), indent=1))
    else:
        print(receipt_table(receipt))
    raise typer.Exit(0 if receipt.exact else 1)
