"""What does a head do on average?

The mean of its weights over all inputs, by position, as in AttentionViz: row i is the mean over the
inputs that reach position i, scaled to sum to one over the keys that are shown. The same of what it
moves and of its contributions, which have signs: there the sizes of a row sum to one.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.maps import map_files
from attention_atlas.page.answers.moved import view_as
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.sinks import sinks
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import maps as wire
from attention_atlas.page.wire.constants import UNIT
from attention_atlas.store.contributions import CONTRIBUTION
from attention_atlas.store.first_rows import sum_of_first_rows
from attention_atlas.store.head_weights import without_keys
from attention_atlas.store.pyramids import MOST_WITHOUT
from attention_atlas.store.reader import StoredAtlas

POSITIONS = 64  # the first ones; few inputs are longer, and a picture shows no more
INPUTS = 500  # at most, evenly spaced
INPUTS_READ_WHOLE = 60  # where all layers of each are read
WEIGHTS, NOTHING, SINKS = "weights", "-", "sinks"


def mean_pattern(
    subject: Subject, name: str, how: str | None = None, without: str | None = None
) -> wire.MeanPattern:
    """Return the mean (N, M) of a head at the first positions, over up to INPUTS inputs.

    how      weights (None), moved or contribution
    without  "sinks": without those of each input, of any layer as in other views, over fewer
             inputs, since all layers are read; "-" and None: with all keys
    """
    head, how, without = Head.parse(name), how or WEIGHTS, without or NOTHING
    if without not in (NOTHING, SINKS):
        raise PickError(f"{without[:40]!r} names no keys; give {NOTHING} or {SINKS}")
    known = _with_vectors(subject)
    most = min(len(known), INPUTS if without == NOTHING else INPUTS_READ_WHOLE)
    numbers = known[np.unique(np.linspace(0, len(known) - 1, most).astype(int))]
    tower = head.tower or subject.towers[0].name
    total, alone = _sum_together(subject, numbers, head, how, without)
    reached = np.zeros(POSITIONS, np.uint32)
    longest = wide = 0
    for number in numbers.tolist():
        _, rows, columns = subject.shape(number, head.layer, head.tower)
        n, m = min(rows, POSITIONS), min(columns, POSITIONS)
        reached[:n] += 1
        longest, wide = max(longest, rows), max(wide, columns)
        if number not in alone:
            continue
        gone = sinks(subject, number, tower).sinks if without == SINKS else []
        keys = [sink.position for sink in gone[:MOST_WITHOUT]]
        total[:n, :m] += _first_rows(subject, number, head, (n, m), how, keys)
    n, m = min(longest, POSITIONS), min(wide, POSITIONS)
    mean = total[:n, :m] / np.maximum(np.abs(total[:n, :m]).sum(1, keepdims=True), 1e-12)
    signed = how == CONTRIBUTION
    packed = mean.astype(np.float32) if signed else np.rint(mean * UNIT).astype(np.uint16)
    return wire.MeanPattern(str(head), len(numbers), longest, reached[:n], packed)


def _sum_together(
    subject: Subject, numbers: npt.NDArray[np.intp], head: Head, how: str, without: str
) -> tuple[npt.NDArray[np.float64], set[int]]:
    """Return the sum of the first weights of inputs that can be read together, and the others."""
    base = subject.base if isinstance(subject, Grown) else subject
    if how != WEIGHTS or without != NOTHING or not isinstance(base, StoredAtlas):
        return np.zeros((POSITIONS, POSITIONS)), set(numbers.tolist())
    stored = numbers < base.manifest.inputs
    total = sum_of_first_rows(base, numbers[stored].tolist(), head, POSITIONS)
    return total, set(numbers[~stored].tolist())


def _first_rows(
    subject: Subject, number: int, head: Head, size: tuple[int, int], how: str, keys: list[int]
) -> npt.NDArray[np.float32]:
    """Return the first rows and columns (n, m) of a head, as they are shown, without some keys."""
    n, m = size
    if how == WEIGHTS and not keys:
        rows = subject.rows(number, head.layer, head.tower, [head.head], range(n), range(m))
        return np.asarray(rows[0])
    if how == WEIGHTS:
        rows = subject.rows(number, head.layer, head.tower, [head.head], range(n))[0]
        return without_keys(rows, np.array(keys, np.intp), sink=True)[:, :m]
    shown = view_as(subject, how, ",".join(map(str, keys)) or NOTHING)
    return np.asarray(shown.rows(number, head.layer, head.tower, [head.head], range(n))[0, :, :m])


def _with_vectors(subject: Subject) -> npt.NDArray[np.intp]:
    """Return the numbers of the inputs whose weights are known."""
    kept = subject.manifest.kept_inputs if isinstance(subject, StoredAtlas) else None
    if kept is None:
        return np.arange(len(subject))
    return np.array(sorted(kept), np.intp)


def saved_means(saving: Saving) -> Iterator[str]:
    """Yield the path of every head, if there are maps beside which it is shown."""
    atlas = saving.subject
    if saving.opens("map") and isinstance(atlas, StoredAtlas) and map_files(atlas):
        yield from (f"mean/{head}" for _, _, head in saving.heads())
