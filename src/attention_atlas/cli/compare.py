"""attention-atlas compare: compare models on the same texts."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from attention_atlas.cli.arguments import AsJson
from attention_atlas.cli.talk import say

_MOST_CHANGED = 12  # heads listed


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="An atlas folder.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another atlas of the same texts.")],
    others: Annotated[
        list[Path] | None, typer.Argument(metavar="[MORE...]", help="More atlases of them.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write page.html instead.")] = None,
    without_sinks: Annotated[
        bool,
        typer.Option("--without-sinks", help="Kinds and scores without the sinks of each input."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare models on the same texts: importance, RI, kinds, heads that differ most."""
    from attention_atlas.measure.compare import compare as make
    from attention_atlas.store.reader import StoredAtlas

    atlases = [StoredAtlas.open(path) for path in (first, second, *(others or ()))]
    if save is not None:
        from attention_atlas.page.hosts.export import save_comparison

        save_comparison(save, atlases, without_sinks)
        print(save)
        return
    comparison = make(*atlases, without_sinks=without_sinks)
    if as_json:
        print(json.dumps(_plain(comparison), indent=1, ensure_ascii=False))
        return
    say(comparison.note)
    for title, frame in (
        ("importance", comparison.statistics),
        ("importance, rows with a choice", comparison.statistics_chosen),
        ("heads of each kind", comparison.kinds),
    ):
        print(f"{title}\n{frame.to_string(float_format=lambda value: f'{value:.6f}')}\n")
    first_name, *other_names = comparison.names
    for model, other in enumerate(other_names, 1):
        print(f"heads of {first_name} and their nearest in {other}, least alike first (bits)")
        for head, nearest, away in comparison.apart(model):
            print(f"  {head:12} {nearest:12} {away:.3f}")
        for head, away in (comparison.changed(model) or [])[:_MOST_CHANGED]:
            print(f"  {head:12} from itself: {away:.3f}")


def _plain(comparison: Any) -> dict[str, Any]:
    others = list(enumerate(comparison.names))[1:]
    return {
        "names": comparison.names,
        "note": comparison.note,
        "aligned": comparison.aligned,
        "shared": comparison.shared,
        "importance": comparison.statistics.to_dict(),
        "importance-chosen": comparison.statistics_chosen.to_dict(),
        "kinds": comparison.kinds.to_dict(),
        "nearest": {name: comparison.nearest(name) for name in comparison.heads[0]},
        "apart": {name: comparison.apart(model) for model, name in others},
        "changed": {name: comparison.changed(model) for model, name in others},
    }
