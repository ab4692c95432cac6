"""How does a text become tokens, and what if there are too many?"""

from typing import Any

import torch

from attention_atlas.models.limits import longest
from attention_atlas.models.load import Loaded
from attention_atlas.models.tokens import Encoded, text_tokens
from attention_atlas.names.errors import InputError

_NAMES = ("input_ids", "attention_mask", "token_type_ids")


def encode_text(
    loaded: Loaded, text: str, second: str | None, stream: str, truncate: bool
) -> Encoded:
    """Encode one text or a pair."""
    limit = longest(loaded)
    encoding = tokenize(loaded, text, second)
    cut = limit is not None and len(encoding["input_ids"]) > limit
    if cut and not truncate:
        raise InputError(too_long(loaded, len(encoding["input_ids"]), limit))
    if cut:
        encoding = tokenize(loaded, text, second, truncation=True, max_length=limit)
    if not encoding["input_ids"]:
        raise InputError(f"the tokenizer of {loaded.name} makes no token of {text!r}; write more")
    tensors = {name: torch.tensor([encoding[name]]) for name in _NAMES if name in encoding}
    refuse_foreign_ids(loaded, tensors["input_ids"])
    return Encoded(tensors, {stream: text_tokens(encoding, loaded.tokenizer, text, second)}, cut)


def tokenize(loaded: Loaded, text: str, second: str | None = None, **options: Any) -> Any:
    """Tokenize one text or pair, with all that the tokenizer knows about each token."""
    tokenizer: Any = loaded.tokenizer
    return tokenizer(text, second, **DETAILS, return_offsets_mapping=tokenizer.is_fast, **options)


DETAILS = {
    "return_attention_mask": True,
    "return_special_tokens_mask": True,
    "verbose": False,
}


def too_long(loaded: Loaded, n: int, limit: int | None) -> str:
    return f"the input has {n} tokens and {loaded.name} takes {limit}; cut it or pass truncate"


def refuse_foreign_ids(loaded: Loaded, ids: torch.Tensor) -> None:
    known = getattr(loaded.model.get_input_embeddings(), "num_embeddings", None)
    if known and int(ids.max()) >= known:
        raise InputError(
            f"token {int(ids.max())} is beyond the {known} tokens that {loaded.name} knows; "
            "use the tokenizer the model was trained with"
        )
