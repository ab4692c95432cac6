"""What of its pictures goes into a saved page?

The picked input with every head where that fits, the others where all fit; beyond that the picked
layer, and means and rollouts of every layer.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attention_atlas.page.answers.pictures import has_pictures, sheets
from attention_atlas.page.answers.subject import Subject
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas

GAZE_BYTES = 16_000_000
SHEET_SIDE = 2048  # pixels of the finest sheet of thumbnails that comes along


def gazed_inputs(subject: Subject, picks: Mapping[str, Any], numbers: Sequence[int]) -> list[int]:
    """All inputs where they fit, else the picked one."""
    size = sum(gaze_bytes(subject, i) for i in numbers)
    return list(numbers) if size <= GAZE_BYTES else [int(picks.get("input") or 0)]


def gaze_bytes(subject: Subject, i: int) -> int:
    lengths = subject.tokens(i)["stream"].value_counts()
    return sum(
        2 * (layer.heads + 2) * int(lengths[layer.queries]) * int(lengths[layer.keys])
        for tower in subject.towers
        for layer in tower.layers
    )


def gaze_paths(subject: Subject, picks: Mapping[str, Any], numbers: Sequence[int]) -> Iterator[str]:
    """Pictures, and who looks where on them."""
    if not isinstance(subject, StoredAtlas):
        return
    images = list(subject.inputs()["images"])
    whole = sum(gaze_bytes(subject, i) for i in numbers) <= GAZE_BYTES
    tower_name = picks.get("tower") or subject.towers[0].name
    for i in numbers:
        if i >= len(images) or images[i] is None or not len(images[i]):
            continue
        yield from (f"picture/{i}/{image}" for image in range(len(images[i])))
        for tower in subject.towers:
            for layer in tower.layers:
                stem = f"gaze/{i}/{tower.name}/{layer.layer}"
                yield f"{stem}/mean"
                if _can_roll(tower, layer):
                    yield f"{stem}/rollout"
                picked = tower.name == tower_name and layer.layer == picks.get("layer", 0)
                if whole or picked:
                    yield from (f"{stem}/{head}" for head in range(layer.heads))


def sheet_paths(subject: Subject) -> Iterator[str]:
    """Thumbnails up to a size that a page can carry."""
    if not isinstance(subject, StoredAtlas) or not has_pictures(subject):
        return
    for level, sheet in enumerate(sheets(subject)):
        if level == 0 or max(sheet.width, sheet.height) <= SHEET_SIDE:
            yield f"thumbs/{level}"


def _can_roll(tower: Tower, layer: Layer) -> bool:
    before = [one for one in tower.layers if one.layer <= layer.layer]
    return all(one.queries == one.keys == layer.queries for one in before)
