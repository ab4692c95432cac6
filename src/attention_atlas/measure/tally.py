"""What kinds are a layer's heads over many inputs? Sums are kept, not inputs."""

from dataclasses import dataclass, replace

import numpy as np

from attention_atlas.measure.arrays import Floats, Integers
from attention_atlas.measure.kinds import (
    COLUMNS,
    KINDS,
    LEFT,
    MIXED,
    REST,
    WHOLE,
    Kind,
    make_kinds,
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
        self.evidence, self.inputs = np.zeros((heads, LEFT + 1)), 0
        self.counts = np.zeros((heads, len(KINDS)), int)
        self.offsets = np.zeros((2, heads, _OFFSETS))  # with and without the sink
        self.ends = np.zeros((heads, len(ENDS)))
        self.best: list[dict[str, list[tuple[float, int]]]] = [{} for _ in range(heads)]
        self._least = np.full((heads, len(KINDS)), -np.inf)  # a margin that is worth keeping

    def add(self, evidence: Floats, numbers: Integers) -> None:
        """Add the evidence (inputs, H, 14) of some inputs; those too short (NaN) are left out."""
        long = ~np.isnan(evidence).any((1, 2))
        evidence, numbers = evidence[long], numbers[long]
        inputs, heads = evidence.shape[:2]
        kinds, margins = (
            part.reshape(inputs, heads) for part in name_kinds(evidence.reshape(-1, COLUMNS))
        )
        margins = margins.round(4)
        places = np.arange(heads)
        for of_input, number, named, margin in zip(
            evidence, numbers.tolist(), kinds, margins, strict=True
        ):
            self.evidence += of_input[:, : LEFT + 1]
            *offsets, ends = of_input[:, LEFT + 1 :].T.astype(np.intp)
            for side, (offset, shapes) in enumerate(zip(offsets, (WHOLE, REST), strict=True)):
                strength = of_input[:, shapes][:, NAMES.index("parallel")]
                self.offsets[side, places, offset + FARTHEST + 1] += strength
            self.ends[places, ends] += of_input[:, NAMES.index("radioactive")]
            self.counts[places, named] += 1
            for head in np.flatnonzero(margin >= self._least[places, named]).tolist():
                self._keep(head, int(named[head]), float(margin[head]), number)
        self.inputs += inputs

    def kinds(self) -> list[HeadKind | None]:
        """Name the kind of each head; None where no input was long enough."""
        if not self.inputs:
            return [None] * len(self.evidence)
        offsets = self.offsets.argmax(2) - FARTHEST - 1
        mean = self.evidence / self.inputs
        named = make_kinds(np.column_stack([mean, *offsets, self.ends.argmax(1)]))
        return [self._of(head, kind) for head, kind in enumerate(named)]

    def _of(self, head: int, kind: Kind) -> HeadKind:
        """Return a head's kind with the inputs that agree; "mixed" where less than a half do."""
        agree = self.counts[head, KINDS.index(kind.name)] / self.inputs
        if kind.name != MIXED and agree < 0.5:
            kind = replace(kind, name=MIXED, detail="")
            agree = self.counts[head, KINDS.index(MIXED)] / self.inputs
        counts = dict(zip(KINDS, self.counts[head].tolist(), strict=True))
        return HeadKind(kind, float(agree), self.inputs, counts, self._telling(head, kind.name))

    def _telling(self, head: int, name: str) -> tuple[int, ...]:
        of_any_kind = [pair for pairs in self.best[head].values() for pair in pairs]
        best = self.best[head].get(name) or of_any_kind
        return tuple(number for _, number in sorted(best, reverse=True)[:TELLING])

    def _keep(self, head: int, kind: int, margin: float, number: int) -> None:
        """Keep an input if it is one of those that show a kind of a head best."""
        best = self.best[head].setdefault(KINDS[kind], [])
        best.append((margin, number))
        best.sort(reverse=True)
        del best[TELLING:]
        if len(best) == TELLING:
            self._least[head, kind] = best[-1][0]
