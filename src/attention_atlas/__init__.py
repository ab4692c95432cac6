"""Attention Atlas: see, measure and test what attention does inside any transformer.

import attention_atlas as aa
atlas = aa.capture("builtin:gpt", "The cat sat on the mat because it was tired.")
atlas.weights(input=0, head="L0H0")
aa.head_view(atlas)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attention_atlas.errors import AtlasError, InputError, ModelError, PickError, StoreError
    from attention_atlas.head import Head
    from attention_atlas.measure.compare import compare
    from attention_atlas.measure.kinds import classify
    from attention_atlas.record.check import check
    from attention_atlas.record.run import capture
    from attention_atlas.store.atlas import Atlas
    from attention_atlas.store.atlas import open_atlas as open
    from attention_atlas.view import (
        View,
        head_view,
        heads_view,
        image_view,
        map_view,
        matrix_view,
        model_view,
        neuron_view,
    )

__all__ = [
    "Atlas",
    "AtlasError",
    "Head",
    "InputError",
    "ModelError",
    "PickError",
    "StoreError",
    "View",
    "capture",
    "check",
    "classify",
    "compare",
    "head_view",
    "heads_view",
    "image_view",
    "map_view",
    "matrix_view",
    "model_view",
    "neuron_view",
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
    "View": ("view", "View"),
    "capture": ("record.run", "capture"),
    "check": ("record.check", "check"),
    "classify": ("measure.kinds", "classify"),
    "compare": ("measure.compare", "compare"),
    "head_view": ("view", "head_view"),
    "map_view": ("view", "map_view"),
    "matrix_view": ("view", "matrix_view"),
    "heads_view": ("view", "heads_view"),
    "image_view": ("view", "image_view"),
    "model_view": ("view", "model_view"),
    "neuron_view": ("view", "neuron_view"),
    "open": ("store.atlas", "open_atlas"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attention_atlas' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(f"attention_atlas.{module}"), attribute)


def __dir__() -> list[str]:
    return __all__
