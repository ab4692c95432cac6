"""What kinds are a layer's heads over many inputs? Sums are kept, not inputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.kinds import (
    KINDS,
    LEFT,
    MIXED,
    REST,
    WHOLE,
    Kind,
    make_kind,
    name_kinds,
)
from attention_atlas.measure.shape_sums import FARTHEST
from attention_atlas.measure.shapes import ENDS, NAMES

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
    """Running sums of evidence for the heads of one layer."""

    def __init__(self, heads: int):
        self.evidence, self.inputs = np.zeros((heads, LEFT + 1)), np.zeros(heads, int)
        self.counts = np.zeros((heads, len(KINDS)), int)
        self.offsets = np.zeros((2, heads, _OFFSETS))  # with and without the sink
        self.ends = np.zeros((heads, len(ENDS)))
        self.best: list[dict[str, list[tuple[float, int]]]] = [{} for _ in range(heads)]

    def add(self, evidence: Floats, number: int) -> None:
        """Add one input's evidence (H, 14); an input that was too short (NaN) is left out."""
        if np.isnan(evidence).any():
            return
        self.evidence += evidence[:, : LEFT + 1]
        self.inputs += 1
        heads = np.arange(len(evidence))
        *offsets, ends = evidence[:, LEFT + 1 :].T.astype(np.intp)
        for side, (offset, shapes) in enumerate(zip(offsets, (WHOLE, REST), strict=True)):
            strength = evidence[:, shapes][:, NAMES.index("parallel")]
            self.offsets[side, heads, offset + FARTHEST + 1] += strength
        self.ends[heads, ends] += evidence[:, NAMES.index("radioactive")]
        kinds, margins = name_kinds(evidence)
        self.counts[heads, kinds] += 1
        for best, kind, margin in zip(self.best, kinds.tolist(), margins.tolist(), strict=True):
            _keep(best.setdefault(KINDS[kind], []), round(margin, 4), number)

    def of(self, head: int) -> HeadKind | None:
        """Name the kind of one head; None where no input was long enough."""
        count = int(self.inputs[head])
        if not count:
            return None
        offset, rest_offset = (int(self.offsets[side, head].argmax()) for side in (0, 1))
        mean = self.evidence[head] / count
        kind = make_kind(
            mean[WHOLE], mean[REST], float(mean[LEFT]), offset - FARTHEST - 1,
            rest_offset - FARTHEST - 1, int(self.ends[head].argmax()),
        )  # fmt: skip
        agree = self.counts[head, KINDS.index(kind.name)] / count
        if kind.name != MIXED and agree < 0.5:
            kind = _as_mixed(kind)
            agree = self.counts[head, KINDS.index(MIXED)] / count
        counts = {name: int(self.counts[head, i]) for i, name in enumerate(KINDS)}
        return HeadKind(kind, float(agree), count, counts, self._telling(head, kind.name))

    def _telling(self, head: int, name: str) -> tuple[int, ...]:
        of_any_kind = [pair for pairs in self.best[head].values() for pair in pairs]
        best = self.best[head].get(name) or of_any_kind
        return tuple(number for _, number in sorted(best, reverse=True)[:TELLING])


def _keep(best: list[tuple[float, int]], margin: float, number: int) -> None:
    if len(best) == TELLING and (margin, number) < best[-1]:
        return
    best.append((margin, number))
    best.sort(reverse=True)
    del best[TELLING:]


def _as_mixed(kind: Kind) -> Kind:
    facts: dict[str, Any] = {**kind.__dict__, "name": MIXED, "detail": ""}
    return Kind(**facts)
