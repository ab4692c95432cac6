"""How many tokens does a model take?

Asked of the config and the modules, never of the model's name. None where positions are relative
(T5, BLOOM) or nothing is known.
"""

from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from attention_atlas.models.load import Loaded

_NAMES = (
    "max_position_embeddings",
    "max_encoder_position_embeddings",
    "max_sequence_length",
    "n_positions",
    "n_ctx",
    "max_seq_len",
)
_TARGET_NAMES = (
    "max_target_positions",
    "max_decoder_position_embeddings",
    "max_position_embeddings",
)
_UNSET = 10**6  # tokenizers without a limit say 1e30


def longest(loaded: Loaded) -> int | None:
    """Get how many tokens of text the model takes; None when unlimited or unknown."""
    config = _text_config(loaded.model.config)
    if getattr(config, "alibi", False):
        return None
    limit = _first(config, _NAMES[:1])
    if limit is None and getattr(config, "relative_attention_num_buckets", None) is not None:
        return None
    limit = limit or _first(config, _NAMES[1:])
    if limit is not None:
        return limit - _offset(loaded.model, limit)
    stated = getattr(loaded.tokenizer, "model_max_length", None)
    return int(stated) if stated is not None and stated < _UNSET else None


def longest_target(loaded: Loaded) -> int | None:
    """Get how many tokens the decoder of an encoder–decoder takes."""
    config = loaded.model.config
    return _first(config, _TARGET_NAMES[:2]) or _first(
        getattr(config, "decoder", config), _TARGET_NAMES[2:]
    )


def _text_config(config: Any) -> Any:
    encoder = getattr(config, "encoder", None)
    if getattr(config, "is_encoder_decoder", False) and hasattr(encoder, "to_dict"):
        config = encoder
    try:
        return config.get_text_config()
    except ValueError:  # several text configs inside: the outer one has the limit
        return config


def _first(config: Any, names: tuple[str, ...]) -> int | None:
    values = (getattr(config, name, None) for name in names)
    return next((int(v) for v in values if isinstance(v, int) and v > 0), None)


def _offset(model: Any, found: int) -> int:
    """Get the first position: RoBERTa and its relatives count from behind the padding index."""
    if model not in _OFFSETS:
        _OFFSETS[model] = next(
            (
                module.padding_idx + 1
                for name, module in model.named_modules()
                if name.endswith("position_embeddings")
                and getattr(module, "padding_idx", None) is not None
                and len(module.weight) == found
            ),
            0,
        )
    return _OFFSETS[model]


# a walk through all modules is slow, and each input asks
_OFFSETS: "WeakKeyDictionary[nn.Module, int]" = WeakKeyDictionary()
