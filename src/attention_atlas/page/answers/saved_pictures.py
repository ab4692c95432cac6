"""What of its pictures goes into a saved page?

The picked input with every head where that fits, the others where all fit; beyond that the picked
layer, and means and rollouts of every layer.
"""

from collections.abc import Iterator, Sequence

from attention_atlas.page.answers.pictures import has_pictures, sheets
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas

GAZE_BYTES = 16_000_000
SHEET_SIDE = 2048  # pixels of the finest sheet of thumbnails that comes along


def fits(subject: Subject, inputs: Sequence[int]) -> bool:
    """Return whether every head of these inputs can come along."""
    return sum(_gaze_bytes(subject, number) for number in inputs) <= GAZE_BYTES


def saved_pictures(saving: Saving) -> Iterator[str]:
    """Give every picture of the inputs that come along."""
    for number, images in _pictured(saving):
        yield from (f"picture/{number}/{image}" for image in range(images))


def saved_gazes(saving: Saving) -> Iterator[str]:
    """Give who looks where on the pictures that come along."""
    whole = fits(saving.subject, saving.inputs)
    for number, _ in _pictured(saving):
        for tower in saving.subject.towers:
            for layer in tower.layers:
                stem = f"gaze/{number}/{tower.name}/{layer.layer}"
                yield f"{stem}/mean"
                if _can_roll(tower, layer):
                    yield f"{stem}/rollout"
                if whole or saving.is_picked(tower, layer):
                    yield from (f"{stem}/{head}" for head in range(layer.heads))


def saved_sheets(saving: Saving) -> Iterator[str]:
    """Give thumbnails up to a size that a page can carry."""
    atlas = saving.subject
    if not saving.opens("map") or not isinstance(atlas, StoredAtlas) or not has_pictures(atlas):
        return
    for level, sheet in enumerate(sheets(atlas)):
        if level == 0 or max(sheet.width, sheet.height) <= SHEET_SIDE:
            yield f"thumbs/{level}"


def _pictured(saving: Saving) -> Iterator[tuple[int, int]]:
    """Give the inputs with pictures, and how many each has."""
    atlas = saving.subject
    if not saving.opens("image") or not isinstance(atlas, StoredAtlas):
        return
    names = list(atlas.inputs()["images"])
    for number in saving.inputs:
        images = names[number] if number < len(names) else None
        if images is not None and len(images):
            yield number, len(images)


def _gaze_bytes(subject: Subject, number: int) -> int:
    lengths = subject.tokens(number)["stream"].value_counts()
    return sum(
        2 * (layer.heads + 2) * int(lengths[layer.queries]) * int(lengths[layer.keys])
        for tower in subject.towers
        for layer in tower.layers
    )


def _can_roll(tower: Tower, layer: Layer) -> bool:
    before = [one for one in tower.layers if one.layer <= layer.layer]
    return all(one.queries == one.keys == layer.queries for one in before)
