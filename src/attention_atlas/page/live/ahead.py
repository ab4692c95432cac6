"""What will a page ask for next? Contributions of the weights that it shows.

They need the projections of the model and one product a layer more than weights. These are made
while the server has nothing else to do, and then the packet itself: of the first input when the
server has started, with that of its weights, of any other after its weights were sent. So who opens
a link or turns the switch does not wait for them. Nothing is sent: a page asks for itself.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from attention_atlas.names.wanted import stop_if_unwanted
from attention_atlas.page.answers.find import find_tower, is_long
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.moved import why_not_moved
from attention_atlas.page.live.answers import AS
from attention_atlas.page.live.lane import BusyError, Ticket
from attention_atlas.page.live.queue import Queue
from attention_atlas.store.contributions import CONTRIBUTION
from attention_atlas.store.manifest import Tower
from attention_atlas.store.moved_rows import KEPT

QUIET = 0.25  # seconds without other work before it begins: the page paints meanwhile
PATIENCE = 5.0  # seconds after which it is given up on a busy server
LARGEST = 256_000_000  # bytes of projections and their products that are read ahead
_STEP = 0.02


class Ahead:
    """What is computed for the switch of one atlas; the input that was asked for last counts.

    make  makes the packet of a path, and keeps it
    """

    def __init__(self, atlas: Grown, queue: Queue, make: Callable[[str], object]):
        self._atlas, self._queue, self._make = atlas, queue, make
        self._ticket: Ticket | None = None

    def at_start(self) -> None:
        """Compute what is asked for with the first input, when there is nothing else to do."""

        def first() -> None:
            if len(self._atlas) and self._atlas.towers and not why_not_moved(self._atlas):
                tower = self._atlas.towers[0].name
                self._foresee(0, tower, f"edges/0/{tower}")

        self._ticket = self._queue.enter("ahead", first)

    def after(self, path: str) -> None:
        """Compute what is asked for after the packet of a path, when there is nothing else to do.

        A page of weights asks for all layers of a tower first: edges/0/decoder.
        """
        word, *rest = path.split("/")
        if word != "edges" or len(rest) != 2 or why_not_moved(self._atlas):
            return
        number, tower = rest
        if self._ticket is not None:
            self._queue.leave(self._ticket)
        with suppress(BusyError):
            self._ticket = self._queue.enter("ahead", lambda: self._foresee(int(number), tower))

    def _foresee(self, input: int, name: str, *also: str) -> None:
        tower = find_tower(self._atlas, name)
        if is_long(self._atlas, input, tower) or not self._is_small(input, tower):
            return
        moved, end = self._atlas.moved_rows(CONTRIBUTION), time.monotonic() + PATIENCE
        for layer in tower.layers:
            if not self._atlas.output.has(name, layer.layer):
                continue
            if not self._is_quiet(end):
                return
            moved.foresee(input, layer.layer, name)
        for path in (*also, f"{AS}/{CONTRIBUTION}/-/edges/{input}/{name}"):
            if not self._is_quiet(end):
                return
            self._make(path)

    def _is_quiet(self, end: float) -> bool:
        """Wait until there is no other work; tell whether there was none before `end`."""
        while not self._queue.is_idle(QUIET):
            stop_if_unwanted()
            if time.monotonic() > end:
                return False
            time.sleep(_STEP)
        stop_if_unwanted()
        return True

    def _is_small(self, input: int, tower: Tower) -> bool:
        """Tell whether all layers fit into what is kept, and their projections into some memory."""
        widths = [layer.heads * layer.value_width for layer in tower.layers]
        rows = [self._atlas.shape(input, layer.layer, tower.name)[1] for layer in tower.layers]
        kept = sum(4 * n * (width + 1) for n, width in zip(rows, widths, strict=True))
        return kept <= KEPT and sum(8 * width * width for width in widths) <= LARGEST
