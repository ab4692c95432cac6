"""Does silencing the induction head of the built-in model break the copying of a sequence?"""

import torch
from torch.nn import functional as F

import attention_atlas as aa
from attention_atlas.edits.edit import Edit
from attention_atlas.models.load import load

HALF, ROWS = 24, 8
INDUCTION = "L4H5"


def losses(*edits: Edit) -> tuple[float, float]:
    """The loss on the first and on the second copy of random sequences, in nats a token."""
    loaded = load("builtin:gpt")
    dice = torch.Generator().manual_seed(0)
    once = torch.randint(300, loaded.model.config.vocab_size, (ROWS, HALF), generator=dice)
    ids = torch.cat([once, once], 1)
    with aa.edit(loaded, edits), torch.no_grad():
        logits = loaded.model(ids).logits
    each = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    by_place = each.view(ROWS, -1).mean(0)
    return float(by_place[: HALF - 1].mean()), float(by_place[HALF:].mean())


def test_without_its_induction_head_the_model_no_longer_copies() -> None:
    first, second = losses()
    assert second < 0.2 * first, "it copies"
    _, cut = losses(aa.ablate(INDUCTION))
    assert cut > 5 * second
    _, spread = losses(aa.pattern(INDUCTION, "even"))
    assert spread > 5 * second
    others = [losses(aa.ablate(f"L4H{head}"))[1] for head in range(5)]
    assert cut > 2 * max(others), "the other heads of its layer are not what copies"
