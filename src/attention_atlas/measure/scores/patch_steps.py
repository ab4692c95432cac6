"""How much does a patch look one step to the left, right, up or down?"""

from collections.abc import Callable
from typing import Any

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import RowBlock

STEPS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}


def looks(step: tuple[int, int]) -> Callable[[RowBlock], Any]:
    """Make the function that gives the weight on the patch one step away."""
    return lambda block: block.share(
        block.beside & (block.steps[..., 0] == step[0]) & (block.steps[..., 1] == step[1])
    )


MEASURES = tuple(
    Measure(
        f"patch-{name}",
        f"one patch {name}",
        f"mean over patches that have one there of w on the next patch {name}",
        "Yeh et al. 2023, AttentionViz",
        "shuffled",
        RowMean(looks(step), linear=True),
        needs="patches",
        square=True,
    )
    for name, step in STEPS.items()
)
