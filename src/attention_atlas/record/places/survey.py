"""Are the patches of a vision tower where we expect them? The model is run to find out.

Before the first attention a token depends on its own patch alone. So some patches are altered, and
the queries that change are compared with those expected to. If a tower has another order (windows
packed together, other tokens after them), each patch's number is found in binary: one run for each
digit, in which the patches with that digit are altered. If that fails too, tokens get no places.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from attention_atlas.images.pixel_origins import Shown, whole
from attention_atlas.models.encode import Encoded, collate
from attention_atlas.models.load import Loaded
from attention_atlas.record.places.patch_seats import Ints, Seats, base_cells, tower_seats
from attention_atlas.record.watch.layers import layers_of
from attention_atlas.record.watch.ways import Watch

_AGREE = 0.9  # chance that an altered patch's token changes more than another token
_FEWEST = 4  # with fewer patches than this, nothing can be found out


@dataclass
class Survey:
    """The order of patches in each tower of a model, as far as it is known."""

    loaded: Loaded
    look: Watch
    trusted: dict[str, bool] = field(default_factory=dict)  # by path of the tower
    orders: dict[Any, Ints | None] = field(default_factory=dict)

    def seats(self, path: str, module: str, n: int, first: bool, item: Encoded) -> Seats | None:
        """Return the seats of a stream's n tokens; `first`: they come directly from patches."""
        shown = shown_of(item)
        if shown is None:
            return None
        plain = tower_seats(self.loaded.model, path, module, n, shown)
        if not first:
            return plain if self.trusted.get(path, True) else None
        self.try_tower(path, module, n, item)
        if self.trusted[path] and plain is not None:
            return plain
        cells = base_cells(self.loaded.model, path, shown)
        if cells is None or not _FEWEST <= len(cells[0].image) <= n:
            return None
        key = path, n, _shapes(item)
        if key not in self.orders:
            self.orders[key] = self._order(path, n, item, cells[1])
        order = self.orders[key]
        return None if order is None else _taken(cells[0], order)

    def try_tower(self, path: str, module: str, n: int, item: Encoded) -> None:
        """Find out whether a tower's patches are where we expect them, unless it is known.

        An input without a picture tells nothing.
        """
        shown = shown_of(item)
        if shown is None or path in self.trusted:
            return
        plain = tower_seats(self.loaded.model, path, module, n, shown)
        self.trusted[path] = plain is not None and self._agrees(plain, path, item, shown)

    def _agrees(self, seats: Seats, path: str, item: Encoded, shown: Shown) -> bool:
        cells = base_cells(self.loaded.model, path, shown)
        boxed = np.flatnonzero(~np.isnan(seats.box).any(1))
        if cells is None or len(cells[0].image) < _FEWEST or len(boxed) < _FEWEST:
            return True
        generator = np.random.default_rng(0)
        base = cells[0]
        chosen = generator.random(len(base.image)) < 1 / 8
        chosen[generator.integers(len(chosen))] = True
        change = self._change(path, item, cells[1], chosen)
        if change is None or len(change) != len(seats.image):
            return True
        altered = {name for name, flag in zip(base.names, chosen, strict=True) if flag}
        expected = np.array([seats.names[place] in altered for place in boxed])
        if expected.all() or not expected.any():
            return bool(expected.any())
        hit, miss = change[boxed][expected], change[boxed][~expected]
        wins = (hit[:, None] > miss[None]).mean() + 0.5 * (hit[:, None] == miss[None]).mean()
        return bool(wins >= _AGREE)

    def _order(self, path: str, n: int, item: Encoded, where: list[Any]) -> Ints | None:
        """Return the number of each token's patch (N,), -1: none, found by altering patches."""
        # Noise instead of the input's picture: the order then depends on the shape alone, so that
        # it is the same for every input of that shape.
        noise = torch.Generator().manual_seed(0)
        pixels = torch.randn(item.tensors["pixel_values"].shape, generator=noise)
        item = replace(item, tensors={**item.tensors, "pixel_values": pixels})
        numbers = np.arange(1, len(where) + 1)
        code = np.zeros(n, np.int64)
        for digit in range(len(where).bit_length()):
            change = self._change(path, item, where, (numbers >> digit & 1).astype(bool))
            if change is None or len(change) != n:
                return None
            code |= (change > 0.01 * change.max(initial=0)).astype(np.int64) << digit
        return code - 1 if sorted(code[code > 0]) == numbers.tolist() else None

    def _change(
        self, path: str, item: Encoded, where: list[Any], chosen: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64] | None:
        """Return how much each query of a tower's first layer changes with some patches, (N,)."""
        pixels = item.tensors["pixel_values"].clone().contiguous()
        flat = pixels if pixels.dim() < 4 else pixels.view(-1, *pixels.shape[-3:])
        flat = flat.view(-1, flat.shape[-1]) if pixels.dim() < 4 else flat
        for place in np.flatnonzero(chosen):
            flat[where[place]] += 2
        before = self._queries(path, item)
        after = self._queries(path, replace(item, tensors={**item.tensors, "pixel_values": pixels}))
        if before is None or after is None or before.shape != after.shape:
            return None
        return np.asarray((after - before).abs().amax(1).double().cpu().numpy())

    def _queries(self, path: str, item: Encoded) -> Tensor | None:
        """Return the queries of a tower's first layer, (N, H · D)."""
        tensors, _ = collate([item], self.loaded)
        for layer in layers_of(self.look(tensors)):
            if layer.tower_key == (path, False):
                parts = [call.query.float() for call in layer.steps[0]]
                rows = [part.transpose(1, 2).flatten(2).flatten(0, 1) for part in parts]
                queries = torch.cat(rows)
                return queries if queries.shape[1] else None
        return None


def shown_of(item: Encoded) -> Shown | None:
    """Return what an input's pixels show; pixels given as a tensor show themselves."""
    pixels = item.tensors.get("pixel_values")
    return item.shown or (None if pixels is None else whole(pixels.shape))


def _shapes(item: Encoded) -> tuple[Any, ...]:
    """Return the shapes on which the order of patches may depend."""
    grids = sorted(name for name in item.tensors if "grid" in name or "shape" in name)
    values = (tuple(item.tensors[name].flatten().tolist()) for name in grids)
    return tuple(item.tensors["pixel_values"].shape), *values


def _taken(base: Seats, order: Ints) -> Seats:
    """Return the seats in another order; -1 is a token of the model that has no patch."""
    none = order < 0
    names = [
        base.names[patch] if patch >= 0 else "[CLS]" if place == 0 else f"[REG{place}]"
        for place, patch in enumerate(order)
    ]
    image, row, column = (
        np.where(none, -1, numbers[order]) for numbers in (base.image, base.row, base.column)
    )
    box = np.where(none[:, None], np.nan, base.box[order])
    return Seats(image, row, column, box, names, none.tolist())
