"""How are inputs added to an open atlas?

The folder does not change: each new input is a small atlas of its own, and its input and token
numbers continue those of the folder. A request for all tokens or all vectors at once, as a layout
makes, gets those of the folder only. Edited inputs can be read like added ones, but are not listed.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from attention_atlas.names.errors import ModelError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.edited import EditedInputs, is_edited
from attention_atlas.page.answers.recent_layers import RecentLayers
from attention_atlas.store.attribution import Attribution
from attention_atlas.store.manifest import Tower
from attention_atlas.store.output import Output
from attention_atlas.store.pyramids import Without
from attention_atlas.store.reader import Bools, StoredAtlas, Terms
from attention_atlas.store.rows import Float32
from attention_atlas.store.tiles import Pyramid


class Grown(StoredAtlas):
    """An atlas with the inputs that were added to it."""

    def __init__(self, base: StoredAtlas):
        super().__init__(base.path, base.manifest)
        self.base = base  # a temporary folder lives as long as this object
        self.added: list[StoredAtlas] = []
        self.edited = EditedInputs()
        self._recent = RecentLayers()

    @property
    def output(self) -> Output:
        return self.base.output

    def __len__(self) -> int:
        return self.manifest.inputs + len(self.added)

    def add(self, new: StoredAtlas) -> int:
        """Add an atlas of one input and return the number of the new input."""
        if _shapes(new.towers) != _shapes(self.towers):
            raise ModelError(
                f"{new.manifest.model} gives {_describe(new.towers)} for this text; the atlas has "
                f"{_describe(self.towers)}; give the model that the atlas was captured from"
            )
        self.added.append(new)
        return len(self) - 1

    def new(self, input: int) -> StoredAtlas | None:
        """Get the small atlas of an added or edited input, or None for one of the folder."""
        if is_edited(input):
            return self.edited.get(input)
        index = input - self.manifest.inputs
        return self.added[index] if 0 <= index < len(self.added) else None

    def listed(self, input: int) -> int:
        """Return the number of an input in `inputs()`: of an edited one, that of the plain one."""
        return self.edited.get(input).plain if is_edited(input) else self._check_input(input)

    # As an atlas -----------------------------------------------------------------------------

    def inputs(self) -> pd.DataFrame:
        frames = [self.base.inputs()]
        for number, new in enumerate(self.added, self.manifest.inputs):
            frames.append(new.inputs().assign(input=number))
        return pd.concat(frames, ignore_index=True) if self.added else frames[0]

    def tokens(self, input: int | None = None, stream: str | None = None) -> pd.DataFrame:
        new = None if input is None else self.new(self._check_input(input))
        if new is None:
            return self.base.tokens(input, stream)
        if new not in self.added:
            return new.tokens(0, stream).assign(input=input)
        before = self.added[: self.added.index(new)]
        first = self.manifest.tokens + sum(atlas.manifest.tokens for atlas in before)
        frame = new.tokens(0, stream)
        return frame.assign(input=input, token=frame["token"] + first)

    def shape(self, input: int, layer: int, tower: str | None = None) -> tuple[int, int, int]:
        home, number = self._home(input)
        return home.shape(number, layer, tower)

    def rows(
        self,
        input: int,
        layer: int,
        tower: str | None = None,
        heads: Sequence[int] | None = None,
        rows: Sequence[int] | None = None,
        columns: Sequence[int] | None = None,
    ) -> Float32:
        home, number = self._home(input)
        if home is not self.base:
            return home.rows(number, layer, tower, heads, rows, columns)
        return self._recent.rows(home, number, layer, tower, heads, rows, columns)

    def window(
        self, input: int, layer: int, tower: str | None, rows: range, columns: range,
        heads: Sequence[int] | None = None,
    ) -> Float32:  # fmt: skip
        home, number = self._home(input)
        return home.window(number, layer, tower, rows, columns, heads)

    def pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid:
        home, number = self._home(input)
        return home.pyramid(number, head, without)

    def moved_pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid:
        home, number = self._home(input)
        return home.moved_pyramid(number, head, without)

    def contribution_pyramid(self, input: int, head: str | Head, without: Without = ()) -> Pyramid:
        home, number = self._home(input)
        return home.contribution_pyramid(number, head, without)

    def queries(self, head: str | Head, input: int | None = None) -> Float32:
        home, number = self._home(input)
        return home.queries(head, number)

    def keys(self, head: str | Head, input: int | None = None) -> Float32:
        home, number = self._home(input)
        return home.keys(head, number)

    def values(self, head: str | Head, input: int | None = None) -> Float32:
        home, number = self._home(input)
        return home.values(head, number)

    def attribution(
        self,
        input: int = 0,
        token: int | str | None = None,
        against: int | str | None = None,
        position: int = -1,
    ) -> Attribution:
        home, number = self._home(input)
        return home.attribution(number, token, against, position)

    def layer_values(self, input: int, layer: int, tower: str | None = None) -> Float32:
        home, number = self._home(input)
        return home.layer_values(number, layer, tower)

    def terms(self, head: str | Head, input: int = 0) -> Terms:
        home, number = self._home(input)
        return home.terms(head, number)

    def seen(self, input: int, head: str | Head, rows: range, columns: range) -> Bools:
        home, number = self._home(input)
        return home.seen(number, head, rows, columns)

    def _check_input(self, input: int) -> int:
        return input if is_edited(input) else super()._check_input(input)

    def _home(self, input: int | None) -> tuple[StoredAtlas, Any]:
        new = None if input is None else self.new(self._check_input(input))
        return (self.base, input) if new is None else (new, 0)


def _shapes(towers: tuple[Tower, ...]) -> list[tuple[object, ...]]:
    return [
        (tower.name, layer.layer, layer.heads, layer.groups, layer.width, layer.queries, layer.keys)
        for tower in towers
        for layer in tower.layers
    ]


def _describe(towers: tuple[Tower, ...]) -> str:
    return ", ".join(
        f"{tower.name} of {len(tower.layers)} × {tower.layers[0].heads} heads" for tower in towers
    )
