"""How much does a patch look one step to the left, right, up or down?"""

from collections.abc import Callable

from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import Measure
from attention_atlas.measure.row_block import Floats, RowBlock

STEPS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}


def looks(step: tuple[int, int]) -> Callable[[RowBlock], Floats]:
    """Make the function that gives the weight on the patch one step away."""
    return lambda block: block.share(block.beside & (block.steps == step).all(2))


MEASURES = tuple(
    Measure(
        f"patch-{name}",
        f"one patch {name}",
        f"mean over patches that have one there of w on the next patch {name}",
        "Yeh et al. 2023, AttentionViz",
        "shuffled",
        RowMean(looks(step)),
        needs="patches",
        square=True,
    )
    for name, step in STEPS.items()
)
