"""How are an input and a tower found by what a path says?"""

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.subject import Subject
from attention_atlas.store.manifest import Layer, Tower


def check_input(subject: Subject, number: int) -> int:
    """Return the number of an input that is there; a PickError says which are."""
    if not 0 <= number < len(subject):
        raise PickError(f"there is no input {number}; there are 0 to {len(subject) - 1}")
    return number


def find_tower(subject: Subject, name: str) -> Tower:
    """Return the tower of a name; a PickError says which there are."""
    found = next((tower for tower in subject.towers if tower.name == name), None)
    if found is None:
        there = ", ".join(tower.name for tower in subject.towers)
        raise PickError(f"no tower is named {name[:40]!r}; there is {there}")
    return found


def find_layer(tower: Tower, number: int) -> Layer:
    """Return the layer of a number; a PickError says which there are."""
    found = tower.find(number)
    if found is None:
        there = ", ".join(str(layer.layer) for layer in tower.layers)
        raise PickError(f"{tower.name} has no layer {number}; it has {there}")
    return found


def count_tokens(subject: Subject, input: int, stream: str) -> int:
    """Return how many tokens a stream of an input has."""
    return len(subject.tokens(input, stream))
