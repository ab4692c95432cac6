"""Attention Atlas: see, measure and test what attention does inside any transformer.

import attention_atlas as aa
atlas = aa.capture("builtin:gpt", "The cat sat on the mat because it was tired.")
atlas.weights(input=0, head="L0H0")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attention_atlas.errors import AtlasError, InputError, ModelError, PickError, StoreError
    from attention_atlas.head import Head
    from attention_atlas.record.check import check
    from attention_atlas.record.run import capture
    from attention_atlas.store.atlas import Atlas
    from attention_atlas.store.atlas import open_atlas as open

__all__ = [
    "Atlas",
    "AtlasError",
    "Head",
    "InputError",
    "ModelError",
    "PickError",
    "StoreError",
    "capture",
    "check",
    "open",
]

# Where each public name lives; loaded when first asked for, so that importing costs nothing.
_HOMES = {
    "Atlas": ("store.atlas", "Atlas"),
    "AtlasError": ("errors", "AtlasError"),
    "Head": ("head", "Head"),
    "InputError": ("errors", "InputError"),
    "ModelError": ("errors", "ModelError"),
    "PickError": ("errors", "PickError"),
    "StoreError": ("errors", "StoreError"),
    "capture": ("record.run", "capture"),
    "check": ("record.check", "check"),
    "open": ("store.atlas", "open_atlas"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attention_atlas' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(f"attention_atlas.{module}"), attribute)


def __dir__() -> list[str]:
    return __all__
