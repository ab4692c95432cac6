"""How are input, tower and layer of a path found?"""

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.edited import is_edited
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire.constants import LONG_INPUT
from attention_atlas.store.manifest import Layer, Tower


def check_input(subject: Subject, number: int) -> int:
    """Return the number of an input; a PickError says which there are."""
    if isinstance(subject, Grown) and is_edited(number):
        subject.edited.get(number)
        return number
    if not 0 <= number < len(subject):
        raise PickError(f"there is no input {number}; there are 0 to {len(subject) - 1}")
    return number


def listed_input(subject: Subject, number: int) -> int:
    """Return the row of an input in the table of inputs; an edited input has that of the plain."""
    return subject.listed(number) if isinstance(subject, Grown) else number


def find_tower(subject: Subject, name: str) -> Tower:
    """Return the tower of a name; a PickError says which there are."""
    match = next((tower for tower in subject.towers if tower.name == name), None)
    if match is None:
        known = ", ".join(tower.name for tower in subject.towers)
        raise PickError(f"no tower is named {name[:40]!r}; there is {known}")
    return match


def find_layer(tower: Tower, number: int) -> Layer:
    """Return the layer of a number; a PickError says which there are."""
    match = tower.find(number)
    if match is None:
        known = ", ".join(str(layer.layer) for layer in tower.layers)
        raise PickError(f"{tower.name} has no layer {number}; it has {known}")
    return match


def is_long(subject: Subject, input: int, tower: Tower) -> bool:
    """Tell whether an input is too long for packets of all its weights: it has tiles."""
    streams = {name for layer in tower.layers for name in (layer.queries, layer.keys)}
    return max(count_tokens(subject, input, stream) for stream in streams) > LONG_INPUT


def count_tokens(subject: Subject, input: int, stream: str) -> int:
    """Return how many tokens a stream of an input has."""
    return len(subject.tokens(input, stream))
