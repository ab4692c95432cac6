"""What is picked when a view opens? The arguments of a view, checked, as picks of the page."""

from collections.abc import Sequence
from typing import Any

from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.maps import map_files, map_points
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.constants import COLOURS
from attention_atlas.store.manifest import Tower
from attention_atlas.store.maps import read_map
from attention_atlas.store.patch_places import seated
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.token_sets import check_set


def text_picks(
    subject: Subject,
    view: str,
    input: int,
    tower: str | None,
    layer: int | None,
    heads: Sequence[int | str] | None,
) -> dict[str, Any]:
    """Check input, tower, layer and heads and return them as picks."""
    Answers(subject).answer(f"input/{input}")  # refuses an input that is not there
    names = [head for head in heads or () if isinstance(head, str)]
    if names and layer is None:
        first = Head.parse(names[0])
        tower, layer = first.tower or tower, first.layer
    picked_tower = _tower(subject, tower)
    number = picked_tower.layers[0].layer if layer is None else layer
    picked_layer = picked_tower.find(number)
    if picked_layer is None:
        known = ", ".join(str(known.layer) for known in picked_tower.layers)
        raise PickError(f"{picked_tower.name} has no layer {number}; it has {known}")
    count = picked_layer.heads
    picked = range(count) if heads is None else [_number(head) for head in heads]
    beyond = [head for head in picked if not 0 <= head < count]
    if beyond:
        raise PickError(f"there is no head {beyond[0]}: layer {number} has heads 0 to {count - 1}")
    prefix = picked_tower.name if len(subject.towers) > 1 else ""
    return {
        "view": view,
        "input": input,
        "tower": picked_tower.name,
        "layer": number,
        "heads": [str(Head(prefix, number, head)) for head in picked],
    }


def set_picks(
    subject: Subject, picks: dict[str, Any], pick: Sequence[int], side: str, together: str
) -> dict[str, Any]:
    """Return the picks with some tokens picked; one token is pinned, several are a set."""
    if not len(pick):
        return picks
    layer = _tower(subject, picks["tower"]).find(picks["layer"])
    assert layer is not None
    stream = layer.queries if side == "query" else layer.keys
    count = len(subject.tokens(picks["input"], stream))
    positions = check_set(pick, count, side, together)
    return {
        **picks, "token": {"side": side, "position": positions[-1]}, "pinned": True,
        "chosen": {"side": side, "positions": positions} if len(positions) > 1 else None,
        "together": together,
    }  # fmt: skip


def map_picks(
    atlas: Any, map: str | None, colour: str, search: str, display_mode: str,
    head: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Check map, colour and head and return them as picks."""
    if not isinstance(atlas, StoredAtlas):
        raise InputError(
            "a map needs queries and keys, which plain attention does not have; capture them: "
            "aa.matrix_view(aa.capture(model, texts))"
        )
    files = map_files(atlas)
    if map is not None and map not in files:
        names = ", ".join(files) or "none yet; make one: atlas.layout('umap')"
        raise PickError(f"no map is named {map!r}; there is {names}")
    shown = map or next(iter(files), "")
    if colour not in COLOURS and shown:
        _check_colour(atlas, shown, colour)
    picks = text_picks(atlas, "head", 0, None, None, None if head is None else [head])
    return {
        **picks, "tab": "map", "map": shown, "mapHead": head,
        "colour": colour, "search": search, "theme": theme(display_mode),
    }  # fmt: skip


def _check_colour(atlas: StoredAtlas, name: str, colour: str) -> None:
    """Refuse a colour that is not in the menu of the page."""
    groups = read_map(map_files(atlas)[name]).groups
    columns = [column.name for group in groups for column in map_points(atlas, name, group).columns]
    if colour not in columns:
        known = ", ".join(dict.fromkeys([*COLOURS, *columns]))
        raise PickError(f"no colour is named {colour!r}; there is {known}")


def first_head_with_patches(atlas: StoredAtlas) -> str:
    """Get the name of the first head that looks at patches."""
    for tower in atlas.towers:
        for layer in tower.layers:
            if seated(atlas.tokens(0, layer.keys)).any():
                prefix = tower.name if len(atlas.towers) > 1 else ""
                return str(Head(prefix, layer.layer, 0))
    return str(atlas.heads()["head"].iloc[0])


def patch_pick(
    atlas: StoredAtlas, picks: dict[str, Any], patch: tuple[int, int], side: str, picture: int
) -> dict[str, Any]:
    """Return the token of a patch (row, column) as a pick."""
    layer = _tower(atlas, picks["tower"]).find(picks["layer"])
    assert layer is not None
    frame = atlas.tokens(picks["input"], layer.queries if side == "query" else layer.keys)
    chosen = seated(frame) & (frame[["row", "column"]].to_numpy() == patch).all(axis=1)
    if "image" in frame:
        chosen &= frame["image"].to_numpy() == picture
    positions = frame["position"][chosen]
    if not len(positions):
        rows, columns = int(frame["row"].max()) + 1, int(frame["column"].max()) + 1
        raise PickError(
            f"there is no patch {patch} in picture {picture}; it has {rows} × {columns} patches"
        )
    return {"side": side, "position": int(positions.iloc[0])}


def first_head(atlas: Any) -> str | None:
    """Get the name of the first head of an atlas; None if it is no atlas."""
    return str(atlas.heads()["head"].iloc[0]) if isinstance(atlas, StoredAtlas) else None


def _tower(subject: Subject, name: str | None) -> Tower:
    if name is None:
        return subject.towers[0]
    match = next((tower for tower in subject.towers if tower.name == name), None)
    if match is None:
        known = ", ".join(tower.name for tower in subject.towers)
        raise PickError(f"no tower is named {name!r}; there is {known}")
    return match


def _number(head: int | str) -> int:
    return Head.parse(head).head if isinstance(head, str) else int(head)


def shown_heads(subject: Subject, heads: Sequence[int] | None) -> list[int] | None:
    """Check BertViz's include_heads and return it as numbers; None means all heads."""
    if heads is None:
        return None
    most = max(layer.heads for tower in subject.towers for layer in tower.layers)
    beyond = [head for head in heads if not 0 <= head < most]
    if beyond:
        raise PickError(f"include_heads asks for head {beyond[0]}; there are 0 to {most - 1}")
    return [int(head) for head in heads]


def theme(display_mode: str) -> str:
    """Check BertViz's display_mode and return it."""
    if display_mode not in ("auto", "light", "dark"):
        raise InputError(f"display_mode is {display_mode!r}; there is auto, light and dark")
    return display_mode
