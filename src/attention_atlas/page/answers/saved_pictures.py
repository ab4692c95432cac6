"""Which pictures go into a saved page?

All inputs with every head if they fit; else the picked input, with every head if that fits; else
the heads of the picked layer only, with means and rollouts of every layer.
"""

from collections.abc import Iterator, Sequence

from attention_atlas.page.answers.pictures import has_pictures, sheets
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.reader import StoredAtlas

GAZE_BYTES = 16_000_000
SHEET_SIDE = 2048  # pixels of the largest saved sheet of thumbnails


def fits(subject: Subject, inputs: Sequence[int]) -> bool:
    """Tell whether every head of these inputs fits into a saved page."""
    return sum(_gaze_bytes(subject, number) for number in inputs) <= GAZE_BYTES


def saved_pictures(saving: Saving) -> Iterator[str]:
    """Yield the paths of every picture of the saved inputs."""
    for number, images in _pictured(saving):
        yield from (f"picture/{number}/{image}" for image in range(images))


def saved_gazes(saving: Saving) -> Iterator[str]:
    """Yield the paths of where heads look on the saved pictures."""
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
    """Yield the paths of thumbnail sheets up to SHEET_SIDE."""
    atlas = saving.subject
    if not saving.opens("map") or not isinstance(atlas, StoredAtlas) or not has_pictures(atlas):
        return
    for level, sheet in enumerate(sheets(atlas)):
        if level == 0 or max(sheet.width, sheet.height) <= SHEET_SIDE:
            yield f"thumbs/{level}"


def _pictured(saving: Saving) -> Iterator[tuple[int, int]]:
    """Yield each saved input with pictures, and how many it has."""
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
    before = [step for step in tower.layers if step.layer <= layer.layer]
    return all(step.queries == step.keys == layer.queries for step in before)
