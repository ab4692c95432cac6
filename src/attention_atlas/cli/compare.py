"""attention-atlas compare: set models side by side on the same texts."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from attention_atlas.cli.arguments import AsJson
from attention_atlas.cli.talk import say

_MOST_CHANGED = 12  # heads of one name that are listed


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
    from attention_atlas.store.reader import StoredAtlas

    atlases = [StoredAtlas.open(path) for path in (first, second, *(others or ()))]
    if save is not None:
        from attention_atlas.page.hosts.export import save_comparison

        save_comparison(save, atlases)
        print(save)
        return
    made = make(*atlases)
    if as_json:
        print(json.dumps(_plain(made), indent=1, ensure_ascii=False))
        return
    say(made.note)
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
