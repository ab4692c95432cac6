"""How much does a patch look one step to the left, right, up or down?"""

from collections.abc import Callable

from attention_atlas.measure.look import Floats, Look, nothing, share_of
from attention_atlas.measure.measure import Measure

STEPS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}


def looks(step: tuple[int, int]) -> Callable[[Look], Floats]:
    def share(look: Look) -> Floats:
        if look.place is None:
            return nothing(look)
        return share_of(look, look.beside & (look.steps == step).all(2))

    return share


MEASURES = tuple(
    Measure(
        f"patch-{name}",
        f"one patch {name}",
        f"mean over patches that have one there of w on the next patch {name}",
        "Yeh et al. 2023, AttentionViz",
        "shuffled",
        looks(step),
        needs="patches",
        square=True,
    )
    for name, step in STEPS.items()
)
