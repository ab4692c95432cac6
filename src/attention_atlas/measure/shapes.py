"""How parallel, radioactive, homogeneous, X-type and compound is a head on one input?

Five numbers from 0 to 1 for each head. All are shares of attention beyond what an even row would
give, pooled over rows: for keys S of which a row of n visible keys holds the mass m,

    excess = Σ rows (m − |S| / n)  /  Σ rows (1 − |S| / n)

so an even head has 0 and a head that looks nowhere else has 1, whatever the length; an early causal
row, which sees few keys, weighs little, and one that sees nothing but S weighs nothing.

    parallel     best excess of one offset i − j, or of three adjacent ones
    radioactive  best excess of one end: the first token, the last, or the delimiters;
    X-type       excess of both ends together; shared out between these two by how alike they are
    homogeneous  how far below a row split at random the distance from even is (total variation):
                 0 at random, 1 where every row is even
    compound     how far above it: 0 at random, 1 where every row looks at one key;
                 × (1 − the largest of parallel, radioactive and X-type)

Where a causal row ends, so does what it sees: its last token is itself. Keys set aside are taken
out of every row, what is left is made to sum to one again, and a row with next to nothing left
does not count.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]

NAMES = ("parallel", "radioactive", "homogeneous", "X-type", "compound")
ENDS = ("first token", "last token", "delimiters")
FARTHEST = 32  # offsets looked at, or a quarter of the keys
WORTH_WIDTH = 0.05  # what three offsets must bring over one, or one would do
LEAST_LEFT = 0.05  # of a row, for it to count beside keys that were set aside
UNLIKE, ALIKE = 0.3, 0.7  # weaker end / stronger end: below, one end counts; above, both do


@dataclass(frozen=True)
class Shapes:
    """What was found of H heads on one input."""

    evidence: Floats  # (H, 5), in the order of NAMES
    offset: npt.NDArray[np.intp]  # (H,) i − j of the best diagonal
    end: npt.NDArray[np.intp]  # (H,) index into ENDS of the strongest end
    mass: Floats  # (H,) the share of attention that was looked at, before it was made one


def shapes(weights: Floats, seen: Bools, special: Bools, aside: Bools | None = None) -> Shapes:
    """Of weights (H, N, M) over the keys seen (N, M); keys `aside` (M,) are left out of all."""
    kept = seen if aside is None else seen & ~aside
    keys = kept.sum(1)  # (N,)
    even = np.where(keys > 0, 1 / np.maximum(keys, 1), 0.0)  # (N,)
    mass = left = weights.sum(2)  # (H, N)
    if aside is not None:
        weights, mass, left = _set_aside(weights, aside)

    parallel, offset = _best_diagonal(weights, kept, mass, even)
    ends = [_excess(weights, target & kept, mass, even) for target in _ends(seen, special)]
    strength = np.maximum(np.stack(ends, 1), 0)  # (H, 3)
    both, alike = _both_ends(weights, kept, special, mass, even, strength)
    one = strength.max(1)
    x_type = both * alike
    radioactive = np.maximum(one * (1 - alike), 0)

    away = np.abs(weights - mass[:, :, None] * (kept * even[:, None])).sum(2) / 2  # (H, N)
    uneven = np.clip(_over(away.sum(1), mass @ np.where(keys > 0, 1 - even, 0)), 0, 1)
    # A row of n keys split evenly at random is (1 − 1/n)ⁿ away from even, about 1/e.
    by_chance = _over(mass @ (1 - even) ** keys, mass @ np.where(keys > 0, 1 - even, 0))
    homogeneous = np.clip(_over(by_chance - uneven, by_chance), 0, 1)
    focus = np.clip(_over(uneven - by_chance, 1 - by_chance), 0, 1)
    compound = focus * (1 - np.maximum.reduce([parallel, radioactive, x_type]))
    evidence = np.stack([parallel, radioactive, homogeneous, x_type, compound], 1)
    return Shapes(evidence, offset, strength.argmax(1), left.mean(1))


def _set_aside(weights: Floats, aside: Bools) -> tuple[Floats, Floats, Floats]:
    """Weights without some keys, rows made one again; which rows count; what was left of each."""
    weights = weights * ~aside
    left = weights.sum(2)  # (H, N)
    counts = left >= LEAST_LEFT
    whole = np.where(counts, left, 1)[:, :, None]
    return np.where(counts[:, :, None], weights / whole, 0), counts.astype(weights.dtype), left


def _excess(weights: Floats, target: Bools, mass: Floats, even: Floats) -> Floats:
    """(H,): excess of the keys `target` (N, M), pooled over rows."""
    share = target.sum(1) * even  # (N,) what an even row would give
    held = np.einsum("hnm,nm->h", weights, target)
    return _over(held - mass @ share, mass @ np.where(even > 0, 1 - share, 0))


def _over(part: Floats, whole: Floats) -> Floats:
    return np.where(whole > 1e-9, part / np.maximum(whole, 1e-9), 0.0)


def _ends(seen: Bools, special: Bools) -> list[Bools]:
    """(N, M) each: first token, last token (nothing where rows do not all see it), delimiters."""
    first, last = np.zeros_like(seen), np.zeros_like(seen)
    first[:, 0] = True
    last[:, -1] = seen[:, -1].all()
    delimiters = np.broadcast_to(special, seen.shape).copy()
    delimiters[:, 0] = False
    return [first, last, delimiters]


def _both_ends(
    weights: Floats, kept: Bools, special: Bools, mass: Floats, even: Floats, strength: Floats
) -> tuple[Floats, Floats]:
    """(H,) each: excess of the first token and another end together, and how alike they are."""
    first, last, delimiters = _ends(kept, special)
    if not last.any():
        last = _last_seen(kept)
    best = np.zeros(len(weights))
    alike = np.zeros(len(weights))
    start = strength[:, 0]
    for other in (last, delimiters):
        other = other & ~first
        both = np.maximum(_excess(weights, (first | other) & kept, mass, even), 0)
        end = np.maximum(_excess(weights, other & kept, mass, even), 0)
        ratio = _over(np.minimum(start, end), np.maximum(start, end))
        closeness = np.clip((ratio - UNLIKE) / (ALIKE - UNLIKE), 0, 1)
        better = both * closeness > best * alike
        best, alike = np.where(better, both, best), np.where(better, closeness, alike)
    return best, alike


def _last_seen(kept: Bools) -> Bools:
    """(N, M): the last key that each row sees."""
    last = np.zeros_like(kept)
    rows = np.flatnonzero(kept.any(1))
    last[rows, kept.shape[1] - 1 - kept[rows, ::-1].argmax(1)] = True
    return last


def _best_diagonal(
    weights: Floats, kept: Bools, mass: Floats, even: Floats
) -> tuple[Floats, npt.NDArray[np.intp]]:
    """(H,) each: excess of the best diagonal, one or three wide, and its offset i − j."""
    heads, n, m = weights.shape
    reach = max(1, min(m // 4, FARTHEST))
    offsets = np.arange(-reach - 1, reach + 2)  # one more on each side, for neighbours
    columns = np.arange(n)[:, None] - offsets  # (N, O)
    inside = (columns >= 0) & (columns < m)
    columns = np.where(inside, columns, 0)
    rows = np.arange(n)[:, None]
    there = kept[rows, columns] & inside  # (N, O)
    held = np.einsum("hno,no->hno", weights[:, rows, columns], there)  # (H, N, O)

    best, where = np.zeros(heads), np.zeros(heads, np.intp)
    for width in (1, 3) if m >= 12 else (1,):
        counted = _wide(there.astype(float), width)  # (N, O')
        enough = (counted >= width).sum(0) * 2 >= n
        share = counted * even[:, None]
        # Rows whose target lies outside can neither follow the offset nor break it.
        follows = mass[:, :, None] * (counted > 0)  # (H, N, O')
        gained = _wide(held, width).sum(1) - np.einsum("hno,no->ho", follows, share)
        possible = np.einsum("hno,no->ho", follows, np.where(even[:, None] > 0, 1 - share, 0))
        excess = np.where(enough, _over(gained, possible), 0)
        found = excess.max(1)
        middle = offsets[width // 2 : len(offsets) - width // 2]
        better = found > best + (WORTH_WIDTH if width > 1 else 0)
        where = np.where(better, middle[excess.argmax(1)], where)
        best = np.where(better, found, best)
    return best, where


def _wide(values: Floats, width: int) -> Floats:
    """Sums of `width` neighbours along the last axis."""
    if width == 1:
        return values
    length = values.shape[-1] - width + 1
    return np.asarray(sum(values[..., start : start + length] for start in range(width)))
