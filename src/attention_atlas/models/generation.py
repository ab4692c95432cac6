"""What does a model write after an input, greedily?"""

from typing import Any

import torch
from transformers import GenerationMixin


def write_greedily(model: Any, tensors: dict[str, torch.Tensor], new: int) -> list[int]:
    """Let a model write at most `new` tokens; gives all that it read and wrote, but the last.

    The last token was written but never read. Encoder–decoders write in the plain loop: some
    models' own (Whisper's) tries languages first and hides the first tokens that its decoder read.
    """
    options: dict[str, Any] = {"max_new_tokens": new, "do_sample": False, "num_beams": 1}
    if getattr(model.config, "is_encoder_decoder", False):
        written = GenerationMixin.generate(model, **tensors, **options)
    else:
        written = model.generate(**tensors, **options)
    ids: list[int] = written[0, :-1].tolist()
    return ids
