"""Every score once more, for one head, in loops over rows and keys, written from the formulas.

w (N, M) weights, see (N, M), and plain lists. None stands for no answer.
"""

import math
from typing import Any

Rows = list[list[float]]


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def choosing(see: Any) -> list[int]:
    return [i for i in range(len(see)) if sum(bool(x) for x in see[i]) >= 2]


def keys(see: Any, i: int) -> list[int]:
    return [j for j in range(len(see[i])) if see[i][j]]


def importance(w: Any, see: Any, **_: Any) -> float | None:
    return max(float(x) for row in w for x in row)


def importance_chosen(w: Any, see: Any, **_: Any) -> float | None:
    rows = choosing(see)
    return max(float(x) for i in rows for x in w[i]) if rows else None


def confidence(w: Any, see: Any, **_: Any) -> float | None:
    return mean([max(float(x) for x in w[i]) for i in choosing(see)])


def entropy(w: Any, see: Any, **_: Any) -> float | None:
    found = []
    for i in choosing(see):
        bits = -sum(float(x) * math.log(float(x)) for x in w[i] if x > 1e-12)
        found.append(bits / math.log(len(keys(see, i))))
    return mean(found)


def first_token(w: Any, see: Any, **_: Any) -> float | None:
    return mean([float(w[i][0]) for i in choosing(see) if see[i][0]])


def delimiter(w: Any, see: Any, special: Any, punctuation: Any, **_: Any) -> float | None:
    marks = [j for j in range(1, len(special)) if special[j] or punctuation[j]]
    return mean(
        [sum(float(w[i][j]) for j in marks) for i in choosing(see) if any(see[i][j] for j in marks)]
    )


def _offset(w: Any, see: Any, offset: int) -> float | None:
    found = []
    for i in choosing(see):
        j = i + offset
        if 0 <= j < len(see[i]) and see[i][j]:
            found.append(float(w[i][j]))
    return mean(found)


def self_token(w: Any, see: Any, **_: Any) -> float | None:
    return _offset(w, see, 0)


def previous(w: Any, see: Any, **_: Any) -> float | None:
    return _offset(w, see, -1)


def next_token(w: Any, see: Any, **_: Any) -> float | None:
    return _offset(w, see, 1)


def _copies(w: Any, see: Any, ids: Any, special: Any, shift: int) -> float | None:
    found = []
    for i in choosing(see):
        if special[i] or ids[i] < 0:
            continue
        targets = []
        for j in range(i):
            is_copy = ids[j] == ids[i] and not special[j]
            if is_copy and j + shift < i and see[i][j + shift]:
                targets.append(j + shift)
        if targets:
            found.append(sum(float(w[i][j]) for j in targets))
    return mean(found)


def duplicate(w: Any, see: Any, ids: Any, special: Any, **_: Any) -> float | None:
    return _copies(w, see, ids, special, 0)


def induction(w: Any, see: Any, ids: Any, special: Any, **_: Any) -> float | None:
    return _copies(w, see, ids, special, 1)


def distance(w: Any, see: Any, **_: Any) -> float | None:
    return mean([sum(float(w[i][j]) * abs(i - j) for j in range(len(w[i]))) for i in choosing(see)])


def spread(w: Any, see: Any, **_: Any) -> float | None:
    found = []
    for i in choosing(see):
        total = sum(float(x) for x in w[i])
        middle = sum(float(w[i][j]) * abs(i - j) for j in range(len(w[i]))) / total
        varies = sum(float(w[i][j]) * (abs(i - j) - middle) ** 2 for j in range(len(w[i]))) / total
        found.append(math.sqrt(varies))
    return mean(found)


def diagonality(w: Any, see: Any, **_: Any) -> float | None:
    found = []
    for i in choosing(see):
        farthest = max(abs(i - j) for j in keys(see, i))
        found.append(1 - sum(float(w[i][j]) * abs(i - j) for j in range(len(w[i]))) / farthest)
    return mean(found)


def coverage(w: Any, see: Any, **_: Any) -> float | None:
    rows = choosing(see)
    if not rows:
        return None
    got = [sum(float(w[i][j]) for i in rows) for j in range(len(w[0]))]
    shares = [one / sum(got) for one in got]
    bits = -sum(share * math.log(share) for share in shares if share > 1e-12)
    seen = sum(any(see[i][j] for i in range(len(see))) for j in range(len(w[0])))
    return math.exp(bits) / seen


def sink(w: Any, see: Any, **_: Any) -> float | None:
    rows = choosing(see)
    if not rows:
        return None
    m = len(w[0])
    got = [sum(float(w[i][j]) for i in rows) for j in range(m)]
    even = [sum(1 / len(keys(see, i)) for i in rows if see[i][j]) for j in range(m)]
    order = sorted(got)
    median = (order[(m - 1) // 2] + order[m // 2]) / 2
    if m < 3:
        return 0.0
    found = [
        one for one, flat in zip(got, even, strict=True)
        if one >= 0.05 * sum(got) and one >= 5 * median
        and one / sum(got) >= 1.5 * flat / sum(even)
    ]  # fmt: skip
    return sum(found) / sum(got)


def norm_gap(query: Any, key: Any, **_: Any) -> float | None:
    def length(vectors: Any) -> float:
        lengths = [math.sqrt(sum(float(x) ** 2 for x in one)) for one in vectors]
        return sum(lengths) / len(lengths)

    return math.log2(length(query) / length(key))


def distance_dot(see: Any, query: Any, key: Any, **_: Any) -> float | None:
    dots, away = [], []
    for i in range(len(query)):
        for j in keys(see, i):
            dots.append(sum(float(a) * float(b) for a, b in zip(query[i], key[j], strict=True)))
            away.append(math.dist([float(a) for a in query[i]], [float(b) for b in key[j]]))
    if len(dots) < 3:
        return None
    a, b = sum(dots) / len(dots), sum(away) / len(away)
    product = sum((x - a) * (y - b) for x, y in zip(dots, away, strict=True))
    return product / math.sqrt(sum((x - a) ** 2 for x in dots) * sum((y - b) ** 2 for y in away))


def value_shift(w: Any, see: Any, value: Any, **_: Any) -> float | None:
    lengths = [math.sqrt(sum(float(x) ** 2 for x in one)) for one in value]
    found = []
    for i in choosing(see):
        moved = [float(x) * size for x, size in zip(w[i], lengths, strict=True)]
        plain = [float(x) / sum(float(y) for y in w[i]) for x in w[i]]
        found.append(sum(abs(m / sum(moved) - p) for m, p in zip(moved, plain, strict=True)) / 2)
    return mean(found)


def _patches(place: Any) -> list[int]:
    return [] if place is None else [j for j, one in enumerate(place) if min(one[1:]) >= 0]


def _share(w: Any, see: Any, rows: list[int], wanted: Any) -> float | None:
    """Mean over rows that choose, and see some key that is wanted, of the weight on those."""
    found = []
    for i in rows:
        mine = [j for j in keys(see, i) if wanted(i, j)]
        if mine and i in choosing(see):
            found.append(sum(float(w[i][j]) for j in mine))
    return mean(found)


def patch_distance(w: Any, see: Any, place: Any, **_: Any) -> float | None:
    found = []
    for i in _patches(place):
        others = [j for j in _patches(place) if see[i][j] and place[j][0] == place[i][0]]
        mass = sum(float(w[i][j]) for j in others)
        if len(others) > 1 and mass > 1e-6:
            away = [math.dist(place[i][1:], place[j][1:]) for j in others]
            sums = sum(float(w[i][j]) * d for j, d in zip(others, away, strict=True))
            found.append(sums / mass)
    return mean(found)


def _steps(wanted: Any) -> Any:
    """Weight on patches of the same picture whose row and column differ as wanted."""

    def share(w: Any, see: Any, place: Any, **_: Any) -> float | None:
        patches = _patches(place)

        def fits(i: int, j: int) -> bool:
            if j not in patches or place[j][0] != place[i][0]:
                return False
            return bool(wanted(place[j][1] - place[i][1], place[j][2] - place[i][2], i == j))

        return _share(w, see, patches, fits)

    return share


def patch_class(w: Any, see: Any, special: Any, place: Any, **_: Any) -> float | None:
    return _share(w, see, _patches(place), lambda i, j: special[j])


def text_to_image(w: Any, see: Any, special: Any, place: Any, **_: Any) -> float | None:
    patches = _patches(place)
    words = [i for i in range(len(see)) if i not in patches and not special[i]]
    return None if place is None else _share(w, see, words, lambda i, j: j in patches)


def image_to_text(w: Any, see: Any, special: Any, place: Any, **_: Any) -> float | None:
    patches = _patches(place)
    return _share(w, see, patches, lambda i, j: j not in patches and not special[j])


PLAIN = {
    "importance": importance, "importance-chosen": importance_chosen, "confidence": confidence,
    "entropy": entropy, "first-token": first_token, "delimiter": delimiter, "self": self_token,
    "previous": previous, "next": next_token, "duplicate": duplicate, "induction": induction,
    "distance": distance, "spread": spread, "diagonality": diagonality, "coverage": coverage,
    "sink": sink,
    "norm-gap": norm_gap, "distance-dot": distance_dot, "value-shift": value_shift,
    "patch-distance": patch_distance,
    "patch-neighbour": _steps(lambda r, c, _: max(abs(r), abs(c)) == 1),
    "patch-row": _steps(lambda r, c, _: r == 0 and c != 0),
    "patch-column": _steps(lambda r, c, _: c == 0 and r != 0),
    "patch-self": _steps(lambda r, c, itself: itself), "patch-class": patch_class,
    "text-to-image": text_to_image, "image-to-text": image_to_text,
    "patch-left": _steps(lambda r, c, _: (r, c) == (0, -1)),
    "patch-right": _steps(lambda r, c, _: (r, c) == (0, 1)),
    "patch-up": _steps(lambda r, c, _: (r, c) == (-1, 0)),
    "patch-down": _steps(lambda r, c, _: (r, c) == (1, 0)),
}  # fmt: skip
