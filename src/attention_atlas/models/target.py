"""What does the decoder of an encoder–decoder read?

The target shifted right behind the start token, exactly as in training; without a target, what the
model itself writes, greedily; and if it cannot write, the start token alone. The last token that
is written is never read, so it is not among the decoder's tokens.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from attention_atlas.models.batch import placed
from attention_atlas.models.generation import write_greedily
from attention_atlas.models.inputs import Input
from attention_atlas.models.limits import longest_target
from attention_atlas.models.load import Loaded
from attention_atlas.models.text import DETAILS, too_long
from attention_atlas.models.tokens import Encoded, Tokens, bare_tokens, text_tokens
from attention_atlas.names.errors import InputError

_NEW_TOKENS = 32


def with_decoder(loaded: Loaded, given: Input, made: Encoded, truncate: bool) -> Encoded:
    """Add what the decoder reads to an encoded input, as tensors and as a stream."""
    cut = False
    if "decoder_input_ids" in made.tensors:
        ids = made.tensors["decoder_input_ids"][0].tolist()
        tokens = bare_tokens(ids, loaded.tokenizer)
    elif "labels" in made.tensors:
        ids = _shifted(loaded.model, made.tensors["labels"])
        tokens = bare_tokens(ids, loaded.tokenizer)
    elif given.second is not None:
        ids, tokens, cut = _from_target(loaded, given.second, truncate)
    else:
        ids = _written(loaded, made)
        tokens = _without_text(bare_tokens(ids, loaded.tokenizer))
    decoder = {"decoder_input_ids": torch.tensor([ids])}
    mask = made.tensors.get("decoder_attention_mask")
    decoder["decoder_attention_mask"] = torch.ones(1, len(ids)).long() if mask is None else mask
    real = decoder["decoder_attention_mask"][0].nonzero()[:, 0].tolist()
    return replace(
        made,
        tensors={**made.tensors, **decoder},
        streams={**made.streams, "decoder": tokens.at(real)},
        truncated=made.truncated or cut,
    )


def _from_target(loaded: Loaded, target: str, truncate: bool) -> tuple[list[int], Tokens, bool]:
    tokenizer: Any = loaded.tokenizer
    if tokenizer is None:
        raise InputError(f"{loaded.name} has no tokenizer; give decoder_input_ids instead")
    options = {**DETAILS, "return_offsets_mapping": tokenizer.is_fast}
    encoding = tokenizer(text_target=target, **options)
    limit = longest_target(loaded)
    cut = limit is not None and len(encoding["input_ids"]) > limit
    if cut and not truncate:
        raise InputError(too_long(loaded, len(encoding["input_ids"]), limit))
    if cut:
        encoding = tokenizer(text_target=target, truncation=True, max_length=limit, **options)
    aimed = text_tokens(encoding, tokenizer, target, segment=1)
    if aimed.id[0] == _start(loaded.model):  # Whisper's tokenizer writes the start token itself
        aimed = aimed.at(range(1, len(aimed)))
    ids = _shifted(loaded.model, torch.tensor([aimed.id]))
    return ids, _follow(ids, aimed, tokenizer), cut


def _follow(ids: list[int], aimed: Tokens, tokenizer: Any) -> Tokens:
    """Get the tokens of `ids`; behind the start token each keeps its place in the target text."""
    start = _without_text(bare_tokens(ids[:1], tokenizer))
    if ids[1:] != aimed.id[: len(ids) - 1]:
        return _without_text(bare_tokens(ids, tokenizer))
    return start + aimed.at(range(len(ids) - 1))


def _without_text(tokens: Tokens) -> Tokens:
    return replace(tokens, segment=[-1] * len(tokens))


def _shifted(model: Any, labels: torch.Tensor) -> list[int]:
    """Shift labels right as the model itself does for its decoder."""
    if hasattr(model, "prepare_decoder_input_ids_from_labels"):
        shifted = model.prepare_decoder_input_ids_from_labels(labels=labels.to(model.device))
        found: list[int] = shifted[0].tolist()
        return found
    return [_start(model), *labels[0, :-1].clamp(min=0).tolist()]


def _start(model: Any) -> int:
    configs = [
        getattr(model, "generation_config", None),
        model.config,
        getattr(model.config, "decoder", None),
    ]
    names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    ids = (getattr(config, name, None) for name in names for config in configs)
    return next((int(i) for i in ids if isinstance(i, int)), 0)


def _written(loaded: Loaded, made: Encoded) -> list[int]:
    model = loaded.model
    if not model.can_generate():
        return [_start(model)]
    limit = longest_target(loaded)
    steps = _NEW_TOKENS if limit is None else min(_NEW_TOKENS, limit - 1)
    tensors = {name: placed(value, model) for name, value in made.tensors.items()}
    with torch.inference_mode(), _resting(model):
        return write_greedily(model, tensors, steps)


@contextmanager
def _resting(model: torch.nn.Module) -> Iterator[None]:
    """Turn dropout off for a while; every module gets its own mode back."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
