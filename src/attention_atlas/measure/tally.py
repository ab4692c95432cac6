"""What are a layer's heads over many inputs? Kinds are gathered as inputs pass by."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.measure.kinds import KINDS, MIXED, Judged, Kind, kind_of, make_kind
from attention_atlas.measure.shapes import ENDS, FARTHEST, NAMES

TELLING = 3  # inputs kept for each head: those that show its kind best
_OFFSETS = 2 * FARTHEST + 3


@dataclass(frozen=True)
class HeadKind:
    """A head's kind over a corpus."""

    kind: Kind
    agree: float  # share of inputs that give the same name by themselves
    inputs: int
    counts: dict[str, int]  # kind → inputs
    telling: tuple[int, ...]  # inputs that show it best


class Tally:
    """Sums for the heads of one layer."""

    def __init__(self, heads: int):
        self.whole, self.rest = np.zeros((heads, len(NAMES))), np.zeros((heads, len(NAMES)))
        self.left, self.inputs = np.zeros(heads), np.zeros(heads, int)
        self.counts = np.zeros((heads, len(KINDS)), int)
        self.offsets = np.zeros((2, heads, _OFFSETS))  # with and without the sink
        self.ends = np.zeros((heads, len(ENDS)))
        self.best: list[dict[str, list[tuple[float, int]]]] = [{} for _ in range(heads)]

    def add(self, judged: Judged, heads: range, number: int) -> None:
        own = slice(heads.start, heads.stop)
        self.whole[own] += judged.whole.evidence
        self.rest[own] += judged.rest.evidence
        self.left[own] += judged.rest.mass
        self.inputs[own] += 1
        index = np.arange(heads.start, heads.stop)
        for side, shapes in enumerate((judged.whole, judged.rest)):
            strength = shapes.evidence[:, NAMES.index("parallel")]
            self.offsets[side, index, shapes.offset + FARTHEST + 1] += strength
        self.ends[index, judged.whole.end] += judged.whole.evidence[:, NAMES.index("radioactive")]
        for place, head in enumerate(heads):
            kind = kind_of(judged, place)
            self.counts[head, KINDS.index(kind.name)] += 1
            _keep(self.best[head].setdefault(kind.name, []), kind.margin, number)

    def of(self, head: int) -> HeadKind | None:
        """The kind of one head; None where no input was long enough to have one."""
        count = int(self.inputs[head])
        if not count:
            return None
        offset, rest_offset = (int(self.offsets[side, head].argmax()) for side in (0, 1))
        kind = make_kind(
            self.whole[head] / count, self.rest[head] / count, self.left[head] / count,
            offset - FARTHEST - 1, rest_offset - FARTHEST - 1, int(self.ends[head].argmax()),
        )  # fmt: skip
        agree = self.counts[head, KINDS.index(kind.name)] / count
        if kind.name != MIXED and agree < 0.5:
            kind = _as_mixed(kind)
            agree = self.counts[head, KINDS.index(MIXED)] / count
        counts = {name: int(self.counts[head, i]) for i, name in enumerate(KINDS)}
        return HeadKind(kind, float(agree), count, counts, self._telling(head, kind.name))

    def _telling(self, head: int, name: str) -> tuple[int, ...]:
        best = self.best[head].get(name) or [
            pair for one in self.best[head].values() for pair in one
        ]
        return tuple(number for _, number in sorted(best, reverse=True)[:TELLING])


def _keep(best: list[tuple[float, int]], margin: float, number: int) -> None:
    best.append((margin, number))
    best.sort(reverse=True)
    del best[TELLING:]


def _as_mixed(kind: Kind) -> Kind:
    facts: dict[str, Any] = {**kind.__dict__, "name": MIXED, "detail": ""}
    return Kind(**facts)
