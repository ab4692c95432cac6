"""What does a head do on average?

The mean of its weights over all inputs, by position, as in AttentionViz: row i is the mean over the
inputs that reach position i, scaled to sum to one over the keys that are shown.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from attention_atlas.names.head import Head
from attention_atlas.page.answers.maps import map_files
from attention_atlas.page.answers.saving import Saving
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire import maps as wire
from attention_atlas.page.wire.constants import UNIT
from attention_atlas.store.reader import StoredAtlas

POSITIONS = 64  # the first ones; few inputs are longer, and a picture shows no more
INPUTS = 500  # at most, evenly spaced


def mean_pattern(subject: Subject, name: str) -> wire.MeanPattern:
    """Return the mean weights (N, M) of a head at the first positions, over up to INPUTS inputs."""
    head = Head.parse(name)
    known = _with_vectors(subject)
    numbers = known[np.unique(np.linspace(0, len(known) - 1, min(INPUTS, len(known))).astype(int))]
    total = np.zeros((POSITIONS, POSITIONS))
    reached = np.zeros(POSITIONS, np.uint32)
    longest = wide = 0
    for number in numbers.tolist():
        _, rows, columns = subject.shape(number, head.layer, head.tower)
        n, m = min(rows, POSITIONS), min(columns, POSITIONS)
        first = subject.rows(number, head.layer, head.tower, [head.head], range(n), range(m))
        total[:n, :m] += first[0]
        reached[:n] += 1
        longest, wide = max(longest, rows), max(wide, columns)
    n, m = min(longest, POSITIONS), min(wide, POSITIONS)
    mean = total[:n, :m] / np.maximum(total[:n, :m].sum(1, keepdims=True), 1e-12)
    packed = np.rint(mean * UNIT).astype(np.uint16)
    return wire.MeanPattern(str(head), len(numbers), longest, reached[:n], packed)


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
