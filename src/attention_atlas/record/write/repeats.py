"""What does each head do on random tokens that are repeated once?

Repetition is the only regularity of such a text. So attention to earlier copies, and to the tokens
after them, shows what a head does about repetition.
"""

from pathlib import Path
from typing import Any

import torch

from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import special_ids
from attention_atlas.names.errors import ModelError
from attention_atlas.record.write.capture import capture
from attention_atlas.store.reader import StoredAtlas

INPUTS, PERIOD = 16, 25


def capture_repeats(loaded: Loaded, seed: int = 0, path: Path | None = None) -> StoredAtlas:
    """Capture random tokens given twice, inside the model's special tokens; return the atlas."""
    dice = torch.Generator().manual_seed(seed)
    inputs: Any = [{"input_ids": repeated(loaded, dice)} for _ in range(INPUTS)]
    model = (loaded.model, loaded.processor)
    return capture(model, inputs, path=path, keep=("query", "key"), seed=seed, progress=False)


def repeated(loaded: Loaded, dice: torch.Generator) -> torch.Tensor:
    """Return the ids of random tokens given twice, (1, N)."""
    size = getattr(loaded.model.config, "vocab_size", None)
    if size is None or getattr(loaded.model.config, "is_encoder_decoder", False):
        raise ModelError(
            f"{loaded.name} does not read a single text, so it cannot be given repeated tokens; "
            "measure the atlas without --model"
        )
    tokenizer = loaded.tokenizer
    special = special_ids(tokenizer) if tokenizer is not None else frozenset[int]()
    plain = torch.tensor([i for i in range(size) if i not in special])
    once = plain[torch.randperm(len(plain), generator=dice)[:PERIOD]].tolist()
    if tokenizer is None:
        return torch.tensor([once + once])
    around = tokenizer("a")["input_ids"]
    inner = tokenizer("a", add_special_tokens=False)["input_ids"]
    start = next((i for i in range(len(around)) if around[i : i + len(inner)] == inner), 0)
    before, after = around[:start], around[start + len(inner) :]
    return torch.tensor([before + once + once + after])
