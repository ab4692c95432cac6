"""What does a page get when it shows what is moved, or contributions, in place of weights?

A view of the subject that has the same methods, so that every packet that reads attention works
with it unchanged: as/contribution/-/edges/0/decoder is edges/0/decoder of that view. Between them
stand the keys that are taken out: none (-), sinks, or positions as in 0,5,7.

Numbers are shares of what the layer gives (contribution) or moves (moved), times its heads: 1 is an
even head's part, so that a row of an even head sums to one as its weights do.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.sinks import sinks
from attention_atlas.page.answers.subject import Subject
from attention_atlas.store.contributions import CONTRIBUTION, MOVED
from attention_atlas.store.moved_rows import MovedRows
from attention_atlas.store.pyramids import MOST_WITHOUT, Without
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.tiles import Pyramid

Float32 = npt.NDArray[np.float32]
SHOWN = {"weights": "weights", MOVED: "what is moved", CONTRIBUTION: "contribution"}
SMALL = 2_000_000  # bytes of the weights of an input of which a folder holds everything
_KEYS = re.compile(r"\d{1,9}(,\d{1,9})*")


class MovedView:
    """An atlas whose rows are what its heads move; everything else is the atlas's own."""

    def __init__(self, atlas: StoredAtlas, how: str, without: Sequence[int] = ()):
        self._atlas, self.how = atlas, how
        self._moved: MovedRows = atlas.moved_rows(how, without)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._atlas, name)

    def __len__(self) -> int:
        return len(self._atlas)

    def rows(
        self,
        input: int,
        layer: int,
        tower: str | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        columns: Sequence[int] | None = None,
    ) -> Float32:
        """Return (H, R, C): shares of the layer, times its heads."""
        count = self._atlas.shape(input, layer, tower)[0]
        if self.how == CONTRIBUTION:
            return self._moved.rows(input, layer, tower, heads, rows, columns, by_heads=True)
        whole = self._moved.rows(input, layer, tower, None, rows)
        total = whole.sum(2).sum(0)
        share = whole if heads is None else whole[list(heads)]
        share = share if columns is None else share[:, :, list(columns)]
        share *= (count / np.where(total > 0, total, 1)).astype(np.float32)[None, :, None]
        return share

    def window(
        self, input: int, layer: int, tower: str | None, rows: range, columns: range,
        heads: Sequence[int] | None = None,
    ) -> Float32:  # fmt: skip
        """Return the same of some rows and columns of a long input."""
        return self.rows(input, layer, tower, heads, rows, columns)

    def layer_weights(self, input: int = 0, layer: int = 0, tower: str | None = None) -> Float32:
        """Return the same of all heads of a layer."""
        return self.rows(input, layer, tower)

    def weights(
        self, input: int = 0, head: str | Head = "L0H0", rows: Sequence[int] | None = None
    ) -> Float32:
        """Return the same of one head, (N, M)."""
        place = Head.parse(head)
        tower = place.tower or self._atlas.towers[0].name
        self._atlas.layer_of(head)  # refuses a head that there is not
        return np.asarray(self.rows(input, place.layer, tower, [place.head], rows)[0])

    def pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid:
        """Return the tiles of a long input: shares of what this head moves, or contributions."""
        if self.how == MOVED:
            return self._atlas.moved_pyramid(input, head, without)
        return self._atlas.contribution_pyramid(input, head, without)

    @property
    def plain(self) -> StoredAtlas:
        """Get the atlas whose weights these are made of."""
        return self._atlas


def view_as(subject: Subject, how: str, without: str) -> Any:
    """Return a subject as a page asks for it; a PickError says what there is."""
    if how not in SHOWN:
        raise PickError(f"{how[:40]!r} cannot be shown; there is {', '.join(SHOWN)}")
    if not isinstance(subject, StoredAtlas):
        raise PickError(why_not_moved(subject))
    keys: list[int] = []
    if without != "-":
        if not _KEYS.fullmatch(without) or without.count(",") >= MOST_WITHOUT:
            raise PickError(
                f"{without[:40]!r} names no keys; give - or up to {MOST_WITHOUT} positions, as in "
                "0,5,7"
            )
        keys = [int(key) for key in without.split(",")]
    return subject if how == "weights" else MovedView(subject, how, keys)


def why_not_moved(subject: Subject) -> str:
    """Return why a page can show weights alone; "" if it can show what is moved too."""
    if not isinstance(subject, StoredAtlas):
        return "plain attention does not say what heads move; capture the model: aa.capture(…)"
    if "value" not in subject.manifest.keep:
        return f"{subject.path.name} was captured without values; capture it again with them"
    stems = [f"{tower.name}.L{layer.layer}" for tower in subject.towers for layer in tower.layers]
    if any(stem in subject.output.layers for stem in stems):
        return ""
    return subject.output.why_not(stems[0])


def saved_as(saving: Saving, path: str, number: int, tower: str) -> Iterator[str]:
    """Yield a path as the page shows it, with and without sinks, if it does not show weights.

    A folder can show everything: it holds what is moved, and of small inputs contributions too and
    both without sinks, which together take six times the bytes of weights.
    """
    if why_not_moved(saving.subject):
        return
    shown = saving.picks.get("shown", "weights")
    small = saving.folder and _bytes(saving.subject, number, tower) <= SMALL
    hows = (MOVED, CONTRIBUTION) if small else (MOVED,) if saving.folder else (shown,)
    found = [sink.position for sink in sinks(saving.subject, number, tower).sinks]
    for how in hows:
        if how not in (MOVED, CONTRIBUTION):
            continue
        yield f"as/{how}/-/{path}"
        if found and (small or not saving.folder):
            yield f"as/{how}/{','.join(map(str, found[:MOST_WITHOUT]))}/{path}"


def _bytes(subject: Subject, number: int, tower: str) -> int:
    """Return the size of all weights of a tower on an input."""
    home = next(known for known in subject.towers if known.name == tower)
    shapes = [subject.shape(number, layer.layer, tower) for layer in home.layers]
    return sum(4 * heads * n * m for heads, n, m in shapes)
