"""The commands that say what heads are: measure, heads, compare, report."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attention_atlas.names.errors import AtlasError, PickError
from attention_atlas.names.head import Head

if TYPE_CHECKING:
    import pandas as pd

    from attention_atlas.store.reader import Atlas

Folder = Annotated[Path, typer.Argument(metavar="ATLAS", help="An atlas folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
_SHOWN = ("importance", "importance-chosen", "entropy", "first-token", "previous", "induction")
_MOST_CHANGED = 12  # heads of one name that are listed


class Shape(StrEnum):
    parallel = "parallel"
    radioactive = "radioactive"
    homogeneous = "homogeneous"
    x_type = "X-type"
    compound = "compound"
    mixed = "mixed"


def measure(
    atlas: Folder,
    model: Annotated[
        str | None, typer.Option(help="The captured model: adds scores that need it live.")
    ] = None,
    conllu: Annotated[
        Path | None, typer.Option(help="A CoNLL-U file whose sentences are the inputs.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure anew.")] = False,
    seed: int = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="The measures as JSON.")] = False,
) -> None:
    """Score every head of an atlas and name its kind. What is already measured is kept."""
    opened = _open(atlas)
    there = opened.scores() is not None and not again
    if there and model is None and conllu is None:
        typer.echo(f"{atlas} is measured already; --again measures anew", err=True)
    scores = opened.measure(model, conllu=conllu, again=again, seed=seed, device=device)
    if as_json:
        print(json.dumps(scores.measures, indent=1, ensure_ascii=False))
        return
    for name, words in scores.measures.items():
        print(f"{name:20} {words['formula']}  [{words['source']}]")


def heads(
    atlas: Folder,
    kind: Annotated[Shape | None, typer.Option(help="Only heads of this kind.")] = None,
    sort: Annotated[
        str, typer.Option(help="A score (largest first), kind, head, or odd: worth a look.")
    ] = "head",
    head: Annotated[str | None, typer.Option(help="All that is known of one head.")] = None,
    relations: Annotated[
        bool, typer.Option("--relations", help="Who follows which relation of the trees given.")
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Every score as CSV.")] = False,
) -> None:
    """List the heads of an atlas with kinds and scores; measures it first if need be."""
    opened = _open(atlas)
    scores = opened.measure()
    if head is not None:
        _print_card(opened, str(Head.parse(head)))
        return
    if relations:
        _print_relations(opened, as_json, as_csv)
        return
    frame = _sorted(opened, opened.heads(), sort)
    if kind is not None:
        frame = frame[frame["kind"] == str(kind)]
    if not _printed(frame, as_json, as_csv):
        extra = [sort] if sort in scores.measures and sort not in _SHOWN else []
        columns = [name for name in (*_SHOWN, *extra) if name in frame.columns]
        shown = frame[["head", "kind", "margin", "agree", *columns]]
        print(shown.to_string(index=False, float_format=lambda value: f"{value:.3f}"))


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="An atlas folder.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another, of the same texts.")],
    others: Annotated[
        list[Path] | None, typer.Argument(metavar="[MORE...]", help="And more of them.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write page.html to look at instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Set models side by side on the same texts: importance, RI, kinds, heads that differ most."""
    from attention_atlas.measure.compare import compare as make

    atlases = [_open(path) for path in (first, second, *(others or ()))]
    if save is not None:
        from attention_atlas.page.hosts.export import save_comparison

        save_comparison(save, atlases)
        print(save)
        return
    made = make(*atlases)
    if as_json:
        print(json.dumps(_plain(made), indent=1, ensure_ascii=False))
        return
    typer.echo(made.note, err=True)
    for title, frame in (
        ("importance", made.statistics),
        ("importance, rows with a choice", made.statistics_chosen),
        ("heads of each kind", made.kinds),
    ):
        print(f"{title}\n{frame.to_string(float_format=lambda value: f'{value:.6f}')}\n")
    for model, other in enumerate(made.names[1:], 1):
        print(f"heads of {made.names[0]} and their nearest in {other}, least alike first (bits)")
        for head, nearest, away in made.apart(model):
            print(f"  {head:12} {nearest:12} {away:.3f}")
        for head, away in (made.changed(model) or [])[:_MOST_CHANGED]:
            print(f"  {head:12} from itself: {away:.3f}")


def report(
    atlas: Folder,
    output: Annotated[
        Path,
        typer.Argument(metavar="OUTPUT", help="report.html, or report.pdf (by Chromium)."),
    ],
) -> None:
    """Write what is known of every head as one page for reading and printing."""
    from attention_atlas.measure.report import report as make
    from attention_atlas.measure.report import write_report

    opened = _open(atlas)
    scores = opened.measure()
    if output.suffix == ".pdf":
        from attention_atlas.page.hosts.figure import print_page

        print_page(output, make(opened, scores))
    else:
        write_report(opened, output)
    print(output)


COMMANDS = (measure, heads, compare, report)


def _open(path: Path) -> "Atlas":
    from attention_atlas.store.reader import open_atlas

    return open_atlas(path)


def _sorted(atlas: "Atlas", frame: "pd.DataFrame", by: str) -> "pd.DataFrame":
    if by == "head":
        return frame
    if by == "odd":
        from attention_atlas.measure.anomalies import anomalies, worth_a_look

        scores = atlas.measure()
        odd = worth_a_look(scores, anomalies(scores))[["head", "odd"]]
        return odd.merge(frame, on="head")
    if by not in frame.columns:
        raise PickError(
            f"there is no score {by!r} to sort by; there are {', '.join(frame.columns)}"
        )
    return frame.sort_values(by, ascending=by == "kind", kind="stable")


def _printed(frame: "pd.DataFrame", as_json: bool, as_csv: bool) -> bool:
    """Whether a whole table was asked for, and now is there."""
    if as_json:
        print(frame.to_json(orient="records", indent=1, force_ascii=False))
    elif as_csv:
        print(frame.to_csv(index=False), end="")
    return as_json or as_csv


def _print_relations(atlas: "Atlas", as_json: bool, as_csv: bool) -> None:
    """All of them as data; for people the best head of each."""
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


def _print_card(atlas: "Atlas", name: str) -> None:
    from attention_atlas.measure.alike import alike
    from attention_atlas.measure.card import card

    scores = atlas.measure()
    try:
        similar = alike(atlas)
    except AtlasError:
        similar = None
    made = card(atlas, scores, name, similar)
    content = {**made.__dict__, "kind": {k: _number(v) for k, v in made.kind.items()}}
    print(json.dumps(content, indent=1, ensure_ascii=False, default=_number))


def _plain(made: Any) -> dict[str, Any]:
    return {
        "names": made.names,
        "note": made.note,
        "aligned": made.aligned,
        "shared": made.shared,
        "importance": made.statistics.to_dict(),
        "importance-chosen": made.statistics_chosen.to_dict(),
        "kinds": made.kinds.to_dict(),
        "nearest": {name: made.nearest(name) for name in made.heads[0]},
        "apart": {name: made.apart(at) for at, name in enumerate(made.names[1:], 1)},
        "changed": {name: made.changed(at) for at, name in enumerate(made.names[1:], 1)},
    }


def _number(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if hasattr(value, "item") else value
