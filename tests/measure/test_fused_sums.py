"""Are the sums of the CUDA kernel those of plain torch?

Runs where there is a CUDA device, and without one by the interpreter of Triton: `make kernels`.
"""

import os
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.one_input import measure_blocks
from attention_atlas.measure.row_block import RowBlock
from tests.measure.made_blocks import random_block

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
pytestmark = pytest.mark.skipif(
    not find_spec("triton") or not (ON_GPU or os.environ.get("TRITON_INTERPRET")),
    reason="needs Triton, and a CUDA device or TRITON_INTERPRET=1",
)


def on_card(block: RowBlock) -> RowBlock:
    def moved(array: Any) -> Any:
        return None if array is None else torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE)

    fields = ("ids", "special", "punctuation", "place", "vectors", "values")
    keys = replace(block.tokens, **{name: moved(getattr(block.tokens, name)) for name in fields})
    query, vectors = moved(block.query), moved(block.tokens.vectors)
    return replace(
        block, weights=moved(block.weights), rows=moved(block.rows), seen=moved(block.seen),
        tokens=keys, query=query, products=query @ vectors.swapaxes(1, 2),
    )  # fmt: skip


SIZES = [(40, True, 99), (70, False, 9), *([(2500, True, 9999)] if ON_GPU else [])]


@pytest.mark.parametrize(("n", "causal", "window"), SIZES)
def test_scores_from_one_reading_are_those_of_many(n: int, causal: bool, window: int) -> None:
    block = on_card(random_block(n, causal, window, n))
    measures = list(MEASURES.values())
    plain = measure_blocks(measures, [block], np.random.default_rng(0))
    fused = measure_blocks(measures, [replace(block, fused=True)], np.random.default_rng(0))
    # float32 sums of n numbers that are at most n large, divided by rows: n · 2⁻²⁴ of the score
    for name in ("scores", "chance", "evidence"):
        expected, found = getattr(plain, name), getattr(fused, name)
        np.testing.assert_allclose(found, expected, rtol=n * 2.0**-20, atol=n * 2.0**-20)
