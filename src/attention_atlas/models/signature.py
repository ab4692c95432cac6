"""Which arguments does the forward pass of a model take?"""

import inspect
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any

_KINDS = {
    "text": {"input_ids"},
    "image": {"pixel_values", "flattened_patches"},
    "sound": {"input_features", "input_values"},
}
# tokenizers return these whether or not the model takes them
_OPTIONAL = {"token_type_ids", "attention_mask", "decoder_attention_mask"}


@dataclass(frozen=True)
class Signature:
    """The parameters of a forward pass, and whether it is an encoder–decoder."""

    names: frozenset[str]
    open: bool  # takes any further keyword
    two_sided: bool

    @property
    def stream(self) -> str:
        """Get the name of the sequence of input tokens."""
        return "encoder" if self.two_sided else "text"

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, names in _KINDS.items() if self.names & names]

    def accepts(self, name: str) -> bool:
        return name in self.names or (self.open and name not in _OPTIONAL)


@cache
def _parameters(forward: Hashable) -> tuple[inspect.Parameter, ...]:
    assert callable(forward)
    return tuple(inspect.signature(forward).parameters.values())


def signature(model: Any) -> Signature:
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    parameters = _parameters(type(inner).forward)
    names = frozenset(p.name for p in parameters)
    return Signature(
        names,
        any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters),
        bool(getattr(inner.config, "is_encoder_decoder", False)) and "decoder_input_ids" in names,
    )
