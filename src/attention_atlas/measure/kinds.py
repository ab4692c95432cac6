"""What kind of head is this?

The kind is the shape with the most evidence (see `shapes`), and its margin is how far the next one
is behind. A head whose margin is under 0.1, or whose best evidence is under 0.2, is "mixed".

Heads rest on the first token or on delimiters when they have nothing to do. Where these hold more
than 0.3 of the attention, the rest is judged alone as well. A rest that is clearly parallel names
the head, because then the sink hid what it does; both answers are kept either way.

Over many inputs, evidence is averaged and the kind is named from the mean; `agree` is the share of
inputs that by themselves give the same name. Where that is under a half, the head is "mixed".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.measure.accumulate import Accumulator, State
from attention_atlas.measure.arrays import Bools, Floats, Integers
from attention_atlas.measure.row_block import Keys, RowBlock
from attention_atlas.measure.row_sums import set_aside_keys
from attention_atlas.measure.shape_sums import ShapeSums, near_diagonal, shape_sums
from attention_atlas.measure.shapes import ENDS, NAMES, shapes_of
from attention_atlas.names.arguments import shown
from attention_atlas.names.errors import InputError

MIXED = "mixed"
KINDS = (*NAMES, MIXED)
KIND_COLOURS = {
    "parallel": "#2b7bba", "radioactive": "#e1812c", "homogeneous": "#8d939c",
    "X-type": "#8c5fbf", "compound": "#3f9b5c", "mixed": "#c9ccd2",
}  # fmt: skip
LEAST_MARGIN, LEAST_EVIDENCE = 0.1, 0.2
CONFIDENT = 0.35  # a margin that random attention never reached in the 500 draws of the test
SINK = 0.3  # what the first token and delimiters must hold before they are set aside
LEAST_REST, REST_EVIDENCE, REST_MARGIN = (
    0.05,
    0.5,
    0.2,
)  # what must be left, and how parallel it must be
SHORTEST = 3  # tokens; below it there is no shape to speak of
COLUMNS = 2 * len(NAMES) + 4  # of evidence
WHOLE, REST, LEFT = slice(0, len(NAMES)), slice(len(NAMES), 2 * len(NAMES)), 2 * len(NAMES)


@dataclass(frozen=True)
class Kind:
    """A head's kind with its evidence."""

    name: str  # one of KINDS
    margin: float  # lead over the next shape
    evidence: dict[str, float]  # shape → 0 … 1
    detail: str  # which offset, which end
    sink: float  # share of attention on the first token and delimiters
    with_sink: str  # the answer for all of the attention
    without_sink: str | None  # the answer for the rest; None where there is no sink to set aside

    @property
    def confident(self) -> bool:
        """Whether the margin is larger than chance gives."""
        return self.name != MIXED and self.margin >= CONFIDENT


class Evidence(Accumulator):
    """Evidence for the shapes of H heads on one input, with and without their sinks: (H, 14).

    Five numbers for all of the attention, five for that outside sinks, its share, both best offsets
    and the strongest end. NaN where the input is too short to have a shape.
    """

    def state(self, block: RowBlock) -> State:
        aside = set_aside_keys(block)
        diagonals = near_diagonal(block)
        return *shape_sums(block, diagonals), *shape_sums(block, diagonals, aside)

    def value(self, state: State) -> Floats:
        half = len(state) // 2
        sums, rest_sums = ShapeSums(*state[:half]), ShapeSums(*state[half:])
        if min(sums.rows, sums.pairs / sums.rows) < SHORTEST:
            return np.full((len(sums.mass), COLUMNS), np.nan)
        whole, rest = shapes_of(sums), shapes_of(rest_sums)
        return np.column_stack(
            [whole.evidence, rest.evidence, rest.mass, whole.offset, rest.offset, whole.end]
        )


def classify(weights: Any, special: Any = None) -> list[Kind]:
    """Name the kind of each head of (H, N, N) weights on one input.

    `special` marks delimiters (N,) besides the first token. Heads without weight above the
    diagonal are taken to be causal.
    """
    try:
        array = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights are {shown(weights)}; give (heads, tokens, tokens)") from None
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3:
        raise InputError(f"weights of shape {array.shape} are not (heads, tokens, tokens)")
    if not np.isfinite(array).all() or (array < 0).any():
        raise InputError("weights must be finite and not negative: give them after the softmax")
    _, n, m = array.shape
    if n < SHORTEST or m < SHORTEST:
        raise InputError(f"{n} × {m} weights have no shape; give at least {SHORTEST} tokens")
    marks = np.zeros(m, bool) if special is None else np.asarray(special, bool).reshape(-1)
    if len(marks) != m:
        raise InputError(f"special marks {len(marks)} tokens and the weights have {m}")
    causal = n == m and not np.triu(array, 1).any()
    seen = np.tri(n, dtype=bool) if causal else np.ones((n, m), bool)
    keys = Keys(np.full(m, -1), marks, np.zeros(m, bool))
    evidence = Evidence().over([RowBlock(array, np.arange(n), seen, keys, n == m)])
    return make_kinds(evidence)


def make_kinds(evidence: Floats) -> list[Kind]:
    """Name the kinds of heads from rows (H, 14) of `Evidence`."""
    with_sink, _ = lead_shapes(evidence[:, WHOLE])
    without, _ = lead_shapes(evidence[:, REST])
    names, margins = name_kinds(evidence)
    rests, hidden = _rests(evidence), _hide_parallel(evidence)
    kinds = []
    for head, (of_head, name) in enumerate(zip(evidence.tolist(), names.tolist(), strict=True)):
        left, offset, rest_offset, end = of_head[-4:]
        detail = {
            "parallel": say_offset(int(rest_offset if hidden[head] else offset)),
            "radioactive": f"to the {ENDS[int(end)]}",
        }
        kinds.append(
            Kind(
                KINDS[name],
                round(float(margins[head]), 4),
                {
                    shape: round(value, 4)
                    for shape, value in zip(NAMES, of_head[WHOLE], strict=True)
                },
                detail.get(KINDS[name], ""),
                round(max(0.0, 1 - left), 4),
                KINDS[with_sink[head]],
                KINDS[without[head]] if rests[head] else None,
            )
        )
    return kinds


def name_kinds(evidence: Floats) -> tuple[Integers, Floats]:
    """Name the kinds of heads from rows (H, 11 or more) of `Evidence`.

    Returns places in KINDS and margins, (H,) each.
    """
    with_sink, margin = lead_shapes(evidence[:, WHOLE])
    without, rest_margin = lead_shapes(evidence[:, REST])
    hidden = _hide_parallel(evidence)
    return np.where(hidden, without, with_sink), np.where(hidden, rest_margin, margin)


def _hide_parallel(evidence: Floats) -> Bools:
    """Tell which sinks hide a parallel head. An X needs its first token, so it stays X."""
    with_sink, _ = lead_shapes(evidence[:, WHOLE])
    without, margin = lead_shapes(evidence[:, REST])
    parallel = NAMES.index("parallel")
    hidden = _rests(evidence) & (without == parallel) & (with_sink != NAMES.index("X-type"))
    hidden &= (margin >= REST_MARGIN) & (evidence[:, REST][:, parallel] >= REST_EVIDENCE)
    return np.asarray(hidden)


def _rests(evidence: Floats) -> Bools:
    """Tell which heads rest on sinks, and have something left outside them."""
    left = evidence[:, LEFT]
    return np.asarray((np.maximum(1 - left, 0) > SINK) & (left > LEAST_REST))


def lead_shapes(evidence: Floats) -> tuple[Integers, Floats]:
    """Find the shapes with the most evidence, (H, 5), or "mixed"; returns places, and leads."""
    order, index = np.argsort(evidence, axis=1), np.arange(len(evidence))
    best, most = order[:, -1], evidence[index, order[:, -1]]
    lead = most - evidence[index, order[:, -2]]
    unclear = (lead < LEAST_MARGIN) | (most < LEAST_EVIDENCE)
    return np.where(unclear, KINDS.index(MIXED), best), lead


def say_offset(offset: int) -> str:
    """Describe the offset i − j of a key in words."""
    if offset == 0:
        return "each token at itself"
    side = "before" if offset > 0 else "after"
    return f"{abs(offset)} {side}"
