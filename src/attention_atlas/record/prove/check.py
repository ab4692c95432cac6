"""Can this model be captured exactly? The receipt tells; nothing is stored."""

from typing import Any

import torch

from attention_atlas.models.encode import Encoded, encode
from attention_atlas.models.inputs import Input, read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.models.processors import part
from attention_atlas.models.tokens import bare_tokens
from attention_atlas.names.errors import ModelError
from attention_atlas.record.prove.shorten import try_shortened
from attention_atlas.store.manifest import Receipt

# Of different length, so that padding is tested too.
_TEXTS = (
    "The nurse gave the old man his medicine, because she knew that he needed it.",
    "Why not?",
    'One, two, three: "Mathematics requires not only logic but also imagination", she wrote.',
)


def check(
    model: Any,
    inputs: Any = None,
    tokenizer: Any = None,
    *,
    seed: int = 0,
    **loading: Any,
) -> Receipt:
    """Return the receipt of a model, for your inputs or a few sample inputs.

    Read `.exact`, `.worst_error`, `.how`, and one entry per layer in `.layers`. `loading` are the
    fields of `Loading`: device, dtype, revision, trust_remote_code, gguf_file, device_map, bits and
    adapter.
    """
    loaded = load(model, tokenizer, **loading)
    if inputs is None:
        items = sample_inputs(loaded, seed)
    else:
        items = [encode(loaded, given) for given in read_inputs(inputs)[:3]]
    return try_shortened(loaded, items, seed).receipt


def sample_inputs(loaded: Loaded, seed: int) -> list[Encoded]:
    """Return a few inputs of the kind that the model takes."""
    kind = getattr(loaded.model, "main_input_name", "input_ids")
    dice = torch.Generator().manual_seed(seed)
    if kind == "input_ids" and loaded.tokenizer is not None:
        return [encode(loaded, Input("text", text=text), truncate=True) for text in _TEXTS]
    if kind == "input_ids":
        return [_random_ids(loaded, length, dice) for length in (12, 5)]
    if kind == "pixel_values":
        return [Encoded({kind: _picture(loaded, dice)}, {}, False) for _ in range(2)]
    if kind in ("input_features", "input_values"):
        return [encode(loaded, _sound(loaded, seconds, dice)) for seconds in (1.0, 0.5)]
    raise ModelError(
        f"{type(loaded.model).__name__} takes {kind}, for which there are no sample inputs; "
        "give your own input"
    )


def _random_ids(loaded: Loaded, length: int, dice: torch.Generator) -> Encoded:
    words = loaded.model.config.get_text_config().vocab_size
    ids = torch.randint(words // 10, words, (1, length), generator=dice)
    tensors = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return Encoded(tensors, {"text": bare_tokens(ids[0].tolist(), None)}, False)


def _picture(loaded: Loaded, dice: torch.Generator) -> torch.Tensor:
    config = loaded.model.config
    size = getattr(config, "image_size", 224)
    height, width = (size, size) if isinstance(size, int) else tuple(size)
    channels = getattr(config, "num_channels", 3)
    return torch.randn(1, channels, height, width, generator=dice)


def _sound(loaded: Loaded, seconds: float, dice: torch.Generator) -> Input:
    """Return noise at the sampling rate of the model."""
    rate = getattr(part(loaded.processor, "feature_extractor"), "sampling_rate", 16_000)
    noise = torch.randn(int(seconds * rate), generator=dice) / 10
    return Input("audio", audio=noise.numpy(), rate=rate)
