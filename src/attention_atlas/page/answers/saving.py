"""What does a saved page carry? Said by each packet for itself, from what is being saved."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_atlas.names.head import Head
from attention_atlas.page.answers.subject import Subject
from attention_atlas.store.manifest import Layer, Tower


@dataclass(frozen=True)
class Saving:
    """What is saved: a page as it was picked, or a folder in which every tab can be opened."""

    subject: Subject
    picks: Mapping[str, Any]
    inputs: Sequence[int]  # the numbers of the inputs that come along
    exact: bool = False  # whole rows and vectors come along
    folder: bool = False

    def opens(self, tab: str) -> bool:
        """Return whether a tab can be opened in what is saved."""
        return self.folder or self.picks.get("tab") == tab

    def is_picked(self, tower: Tower, layer: Layer) -> bool:
        """Return whether a layer is the one in view."""
        name = self.picks.get("tower") or self.subject.towers[0].name
        return tower.name == name and layer.layer == self.picks.get("layer", 0)

    def heads(self) -> Iterator[tuple[Tower, Layer, str]]:
        """Give every head: its tower, its layer and its name."""
        prefixed = len(self.subject.towers) > 1
        for tower in self.subject.towers:
            for layer in tower.layers:
                for head in range(layer.heads):
                    yield tower, layer, str(Head(tower.name if prefixed else "", layer.layer, head))


Carried = Callable[[Saving], Iterable[str]]  # the paths of one packet that come along


def never(_: Saving) -> Iterable[str]:
    """Return no path: only a live page can ask for it."""
    return ()
