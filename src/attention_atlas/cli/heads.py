"""attention-atlas heads: list heads with kinds and scores, or describe one head."""

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from attention_atlas.cli.arguments import AsJson, Folder
from attention_atlas.names.errors import AtlasError, PickError
from attention_atlas.names.head import Head

if TYPE_CHECKING:
    import pandas as pd

    from attention_atlas.atlas import Atlas

Shape = Literal["parallel", "radioactive", "homogeneous", "X-type", "compound", "mixed"]
_SHOWN = ("importance", "importance-chosen", "entropy", "first-token", "previous", "induction")


def heads(
    atlas: Folder,
    kind: Annotated[Shape | None, typer.Option(help="Only heads of this kind.")] = None,
    sort: Annotated[
        str, typer.Option(help="A score (largest first), kind, head, or odd (most unusual first).")
    ] = "head",
    head: Annotated[str | None, typer.Option(help="Print all that is known of one head.")] = None,
    relations: Annotated[
        bool, typer.Option("--relations", help="List the best heads of each relation of the trees.")
    ] = False,
    without_sinks: Annotated[
        bool,
        typer.Option("--without-sinks", help="Kinds and scores without the sinks of each input."),
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print every score as CSV.")] = False,
) -> None:
    """List the heads of an atlas with kinds and scores; measures it first if needed."""
    from attention_atlas.atlas import open_atlas

    opened = open_atlas(atlas)
    opened.measure(without_sinks=without_sinks)
    if head is not None:
        _print_card(opened, str(Head.parse(head)), without_sinks)
        return
    if relations:
        _print_relations(opened, as_json, as_csv)
        return
    frame = _sorted(opened, opened.heads(without_sinks), sort, without_sinks)
    if kind is not None:
        frame = frame[frame["kind"] == kind]
    if not _printed(frame, as_json, as_csv):
        columns = [name for name in (*_SHOWN, sort) if name in frame.columns]
        shown = frame[list(dict.fromkeys(["head", "kind", "margin", "agree", *columns]))]
        print(shown.to_string(index=False, float_format=lambda value: f"{value:.3f}"))


def _sorted(atlas: "Atlas", frame: "pd.DataFrame", by: str, without_sinks: bool) -> "pd.DataFrame":
    if by == "head":
        return frame
    if by == "odd":
        from attention_atlas.measure.anomalies import anomalies, worth_a_look

        scores = atlas.measure(without_sinks=without_sinks)
        odd = worth_a_look(scores, anomalies(scores))[["head", "odd"]]
        return odd.merge(frame, on="head")
    if by not in frame.columns:
        raise PickError(f"no score is named {by!r}; sort by one of {', '.join(frame.columns)}")
    return frame.sort_values(by, ascending=by == "kind", kind="stable")


def _printed(frame: "pd.DataFrame", as_json: bool, as_csv: bool) -> bool:
    """Print a whole table if JSON or CSV was asked for; returns whether it was."""
    if as_json:
        print(frame.to_json(orient="records", indent=1, force_ascii=False))
    elif as_csv:
        print(frame.to_csv(index=False), end="")
    return as_json or as_csv


def _print_relations(atlas: "Atlas", as_json: bool, as_csv: bool) -> None:
    """Print all relations as JSON or CSV, or the best head of each as text."""
    from attention_atlas.measure.relations import best_heads

    table = atlas.relations()
    if table is None:
        raise PickError(
            f"no trees were given for {atlas.path.name}; run: attention-atlas measure "
            f"{atlas.path.name} --conllu FILE"
        )
    if not _printed(table, as_json, as_csv):
        typer.echo("best head of each relation, above the best fixed offset", err=True)
        print(best_heads(table).to_string(index=False, float_format=lambda value: f"{value:.3f}"))


def _print_card(atlas: "Atlas", name: str, without_sinks: bool) -> None:
    from attention_atlas.measure.alike import alike
    from attention_atlas.measure.card import card

    scores = atlas.measure(without_sinks=without_sinks)
    try:
        similar = alike(atlas)
    except AtlasError:
        similar = None
    known = card(atlas, scores, name, similar)
    content = {**known.__dict__, "kind": {k: _number(v) for k, v in known.kind.items()}}
    print(json.dumps(content, indent=1, ensure_ascii=False, default=_number))


def _number(value: Any) -> Any:
    """Convert a NumPy number to a Python one."""
    return value.item() if hasattr(value, "item") else value
