"""What does one head of a long input do? tile/0/L5H1/2/0/3 · overview/0/L5H1/1 · …/0/sinks"""

import re
from collections.abc import Iterator

import numpy as np

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.find import check_input, is_long
from attention_atlas.page.answers.roots import to_roots
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import tiles as wire
from attention_atlas.store.pyramids import Without
from attention_atlas.store.rows import Float32

_KEYS = re.compile(r"\d{1,9}(,\d{1,9})*")


def tile(
    subject: Subject, number: int, name: str, level: int, row: int, column: int,
    without: str | None = None,
) -> wire.TilePacket:  # fmt: skip
    """Return one tile of a head."""
    i, head = check_input(subject, number), Head.parse(name)
    pyramid = subject.pyramid(i, head, _keys(without))
    found = pyramid.tile(level, row, column)
    inside = slice(0, found.rows), slice(0, found.columns)
    cells = _cells(found.strongest[inside], found.mass[inside], pyramid.signed)
    return wire.TilePacket(i, str(head), level, row, column, cells, pyramid.without)


def overview(
    subject: Subject, number: int, name: str, sampled: int, without: str | None = None
) -> wire.OverviewPacket:
    """Return a whole head in one tile, from every 16th row (sampled 1) or from all rows (0)."""
    i, head = check_input(subject, number), Head.parse(name)
    if sampled not in (0, 1):
        raise PickError(f"{sampled} is no kind of overview; give 1 (every 16th row) or 0 (all)")
    pyramid = subject.pyramid(i, head, _keys(without))
    weights = getattr(subject, "plain", subject)  # sinks are those of the weights
    same = weights is subject and not pyramid.without
    plain = pyramid if same else weights.pyramid(i, head)
    found = pyramid.sampled if sampled else pyramid.overview()
    return wire.OverviewPacket(
        i, str(head), pyramid.n, pyramid.m, found.level, found.step,
        _cells(found.strongest, found.mass, pyramid.signed), found.column_mass.astype(np.float32),
        found.total, plain.sampled.sinks(), pyramid.without, found.kept.astype(np.float32),
        found.drawn.astype(np.float32),
    )  # fmt: skip


def saved_overviews(saving: Saving) -> Iterator[str]:
    """Yield the overviews of the picked layer of each long input."""
    picked = [
        (tower, head) for tower, layer, head in saving.heads() if saving.is_picked(tower, layer)
    ]
    for number in saving.inputs:
        if picked and is_long(saving.subject, number, picked[0][0]):
            for _, head in picked:
                yield from (f"overview/{number}/{head}/{sampled}" for sampled in (1, 0))


def _keys(without: str | None) -> Without:
    """Read the keys to take out: positions as in 0,5,7, or the word sinks."""
    if without is None:
        return ()
    if without == "sinks":
        return "sinks"
    if not _KEYS.fullmatch(without):
        raise PickError(f"{without[:40]!r} names no keys; give positions as in 0,5,7, or sinks")
    return [int(key) for key in without.split(",")]


def _cells(strongest: Float32, mass: Float32, signed: bool) -> wire.TileCells:
    peak, most = (float(np.abs(cells).max(initial=0)) for cells in (strongest, mass))
    return wire.TileCells(to_roots(strongest, peak, signed), to_roots(mass, most), peak, most)
