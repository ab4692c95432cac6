"""Every measure that one pass over an atlas computes. A new one is a file and a line here."""

from attention_atlas.measure.measure import Measure
from attention_atlas.measure.scores import (
    confidence,
    coverage,
    delimiter,
    diagonality,
    distance,
    distance_dot,
    duplicate,
    entropy,
    first_token,
    importance,
    importance_chosen,
    induction,
    next_token,
    norm_gap,
    previous_token,
    self_token,
    spread,
    value_shift,
)

MEASURES: dict[str, Measure] = {
    one.MEASURE.name: one.MEASURE
    for one in (
        importance,
        importance_chosen,
        confidence,
        entropy,
        first_token,
        delimiter,
        self_token,
        previous_token,
        next_token,
        duplicate,
        induction,
        distance,
        spread,
        diagonality,
        coverage,
        norm_gap,
        distance_dot,
        value_shift,
    )
}
