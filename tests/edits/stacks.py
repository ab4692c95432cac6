"""Random edits of a model with two layers of four heads, for an input of seven tokens."""

from typing import Any

from hypothesis import strategies as st

import attention_atlas as aa
from attention_atlas.edits.edit import Edit

N, WORDS = 7, 99
NAMES = [f"L{layer}H{head}" for layer in range(2) for head in range(4)] + ["L0", "all"]
heads = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
places = st.none() | st.lists(st.integers(0, N - 1), max_size=3, unique=True)
numbers = st.floats(-3, 3, allow_nan=False)
ids = st.lists(st.integers(3, WORDS - 1), min_size=N, max_size=N)
reference = ids.map(lambda row: {"input_ids": [row]})
where: Any = st.fixed_dictionaries({"positions": places, "inputs": st.sampled_from([None, [0]])})
ROWS = [[1 / (row + 1) if key <= row else 0.0 for key in range(N)] for row in range(N)]
PATTERNS: list[Any] = ["even", "previous", "self", "window", ROWS]


@st.composite
def edits(draw: Any) -> Edit:
    """One edit of any kind."""
    kind, named, options = draw(st.integers(0, 6)), draw(heads), draw(where)
    if kind == 0:
        return aa.ablate(named, **options)
    if kind == 1:
        by, others = draw(st.sampled_from(["mean", "resample"])), [draw(reference)]
        return aa.ablate(named, by=by, from_=others, **options)
    if kind == 2:
        return aa.scale(named, draw(numbers), **options)
    if kind == 3:
        edges = draw(st.none() | st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6))))
        empty = draw(st.sampled_from(["zero", "keep"]))
        return aa.mask(named, tokens=draw(places) or [], edges=edges, empty=empty, **options)
    if kind == 4:
        return aa.pattern(named, draw(st.sampled_from(PATTERNS)), **options)
    if kind == 5:
        side, index = draw(st.sampled_from(["query", "key", "value"])), draw(st.integers(0, 7))
        return aa.neuron(named, side, index, draw(numbers), shared=True, **options)
    what = draw(st.sampled_from(["pattern", "query", "key", "value", "output"]))
    return aa.patch(named, what, from_=draw(reference), shared=True, **options)
