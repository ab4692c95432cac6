"""What is in a saved page? Each packet says which of its paths are saved."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_atlas.names.head import Head
from attention_atlas.page.answers.subject import Subject
from attention_atlas.store.manifest import Layer, Tower


@dataclass(frozen=True)
class Saving:
    """What is being saved: a page with its picks, or a folder in which every tab can be opened."""

    subject: Subject
    picks: Mapping[str, Any]
    inputs: Sequence[int]  # numbers of the saved inputs
    exact: bool = False  # whole rows and vectors are saved too
    folder: bool = False

    def opens(self, tab: str) -> bool:
        """Tell whether a tab can be opened in the saved page or folder."""
        return self.folder or self.picks.get("tab") == tab

    def is_picked(self, tower: Tower, layer: Layer) -> bool:
        """Tell whether a layer is the picked one."""
        name = self.picks.get("tower") or self.subject.towers[0].name
        return tower.name == name and layer.layer == self.picks.get("layer", 0)

    def heads(self) -> Iterator[tuple[Tower, Layer, str]]:
        """Yield tower, layer and name of every head."""
        prefixed = len(self.subject.towers) > 1
        for tower in self.subject.towers:
            for layer in tower.layers:
                for head in range(layer.heads):
                    yield tower, layer, str(Head(tower.name if prefixed else "", layer.layer, head))


Carried = Callable[[Saving], Iterable[str]]  # the paths of one packet that are saved


def never(_: Saving) -> Iterable[str]:
    """Return no path: only a live page has this packet."""
    return ()
