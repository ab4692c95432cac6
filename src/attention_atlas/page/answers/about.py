"""What is there to see? The packet `about`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from attention_atlas.names.token_text import visible
from attention_atlas.page.answers.heads import can_measure
from attention_atlas.page.answers.maps import map_infos, why_no_maps
from attention_atlas.page.answers.moved import why_not_moved
from attention_atlas.page.answers.pictures import has_pictures, sheets
from attention_atlas.page.answers.plain_attention import Attention
from attention_atlas.page.answers.session import Session
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import about as wire
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.patch_places import seated
from attention_atlas.store.reader import StoredAtlas

_LABEL = 60  # characters of an input's label
_SAVED = (
    "a saved page has no model to edit; open the atlas with: attention-atlas serve x.atlas "
    "--model MODEL"
)
_GIVEN = "plain attention has no model to edit; capture the model: aa.capture(…)"


def about_session(session: Session) -> wire.About:
    """Return `about` with the other atlases and the possible actions."""
    plain = isinstance(session.subject, Attention)
    offers: dict[str, Any] = {"no_edits": _GIVEN if plain else _SAVED}
    if session.work is not None:
        offers = dict(session.work.offers())
    others = [other.info for other in session.others]
    return replace(about(session.subject), atlases=others, story=session.story, **offers)


def about(subject: Subject) -> wire.About:
    """Return `about` of one subject alone."""
    frame = subject.inputs()
    lengths = _lengths(subject)
    inputs = [
        _input_line(number, row, lengths.get(number, 0))
        for number, row in enumerate(records(frame))
    ]
    if isinstance(subject, StoredAtlas):
        return _about_atlas(subject, inputs)
    notes = subject.notes if isinstance(subject, Attention) else []
    return wire.About(
        title="Attention", model="", model_class="", kind="attention",
        receipt_line="attention as it was given", exact=False, inputs=inputs,
        towers=[_tower_info(tower, lambda layer: False) for tower in subject.towers],
        has_values=False, notes=notes, no_moved=why_not_moved(subject),
    )  # fmt: skip


def _about_atlas(atlas: StoredAtlas, inputs: list[wire.InputLine]) -> wire.About:
    def info(tower: Tower) -> wire.TowerInfo:
        def has(layer: Layer) -> bool:
            return all(atlas.has(what, layer.layer, tower.name) for what in ("query", "key"))

        return _tower_info(tower, has)

    notes = [
        f"{tower.name}: some layers have a sink, so rows sum to less than one"
        for tower in atlas.towers
        if any(layer.sink for layer in tower.layers)
    ]
    stored = {(tower.name, layer.layer) for tower in atlas.towers for layer in tower.layers}
    lost = [layer for layer in atlas.receipt.layers if (layer.tower, layer.layer) not in stored]
    notes += [f"{layer.tower} layer {layer.layer} is not shown: {layer.reason}" for layer in lost]
    made_from = atlas.manifest.options.get("made_from")
    if made_from:
        told = atlas.manifest.options.get("notes") or []
        notes += [f"made from {made_from}, not captured here", *map(str, told)]
    skipped = atlas.manifest.options.get("skipped") or []
    if skipped:
        notes.append(f"left out, since they cannot be opened: {', '.join(map(str, skipped))}")
    if atlas.manifest.kept_inputs is not None:
        notes.append(f"scores are of all {len(atlas)} inputs; {atlas.kept_words()}")
    maps, unreadable = map_infos(atlas)
    return wire.About(
        title=atlas.manifest.model, model=atlas.manifest.model,
        model_class=atlas.manifest.model_class, kind="atlas",
        receipt_line=atlas.receipt.line, exact=atlas.receipt.exact, inputs=inputs,
        towers=[info(tower) for tower in atlas.towers], has_values="value" in atlas.manifest.keep,
        notes=[*notes, *unreadable], maps=maps, no_maps="" if maps else why_no_maps(atlas),
        can_measure=can_measure(atlas), pictures=has_pictures(atlas), patches=_patches(atlas),
        thumbs=sheets(atlas), no_moved=why_not_moved(atlas), output_line=atlas.output.line,
    )  # fmt: skip


def _lengths(subject: Subject) -> dict[int, int]:
    """Return how many tokens the longest stream of each input has."""
    if not isinstance(subject, StoredAtlas):
        return {0: int(subject.tokens(0)["stream"].value_counts().max())}
    added = range(subject.manifest.inputs, len(subject))
    tables = [subject.tokens(), *map(subject.tokens, added)]
    counts = pd.concat([table[["input", "stream"]] for table in tables]).value_counts()
    longest = counts.groupby(level="input").max()
    return dict(zip(longest.index.tolist(), longest.tolist(), strict=True))


def _patches(atlas: StoredAtlas) -> list[str]:
    """Return the streams whose tokens have places in pictures."""
    tokens = atlas.tokens()
    placed = set(tokens[seated(tokens)]["stream"].unique())
    return [stream for stream in atlas.manifest.streams if stream in placed]


def _input_line(number: int, row: dict[str, Any], tokens: int) -> wire.InputLine:
    texts = [visible(text) for text in (row.get("text"), row.get("second")) if text]
    label = " / ".join(" ".join(text.replace("·", " ").split()) for text in texts)
    cut = label if len(label) <= _LABEL else label[: _LABEL - 1].rstrip() + "…"
    named = row.get("source") or f"{row['kind']} {number}"
    second = bool(row.get("second"))
    return wire.InputLine(number, cut or visible(str(named)), row["kind"], second, tokens)


def _tower_info(tower: Tower, has_vectors: Callable[[Layer], bool]) -> wire.TowerInfo:
    layers = [
        wire.LayerInfo(
            layer.layer, layer.heads, layer.groups, layer.width, layer.value_width,
            has_vectors(layer), layer.queries, layer.keys,
        )
        for layer in tower.layers
    ]  # fmt: skip
    queries, keys = tower.layers[0].queries, tower.layers[0].keys
    role: Any = tower.role
    return wire.TowerInfo(tower.name, role, queries, keys, tower.depth, layers)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries, with None for missing values."""
    plain = frame.astype(object).where(frame.notna(), None)
    rows: list[dict[str, Any]] = plain.to_dict("records")  # type: ignore[assignment]
    return rows
