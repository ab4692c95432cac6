"""Attention Atlas: see, measure and test what attention does inside any transformer.

import attention_atlas as aa
atlas = aa.capture("builtin:gpt", "The cat sat on the mat because it was tired.")
atlas.weights(input=0, head="L0H0")
aa.head_view(atlas)
"""

from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any

from attention_atlas.names.arguments import checked

if TYPE_CHECKING:
    from attention_atlas import ray
    from attention_atlas.atlas import Atlas, capture
    from attention_atlas.atlas import open_atlas as open
    from attention_atlas.edits.ablate import ablate
    from attention_atlas.edits.apply import edit
    from attention_atlas.edits.mask import mask
    from attention_atlas.edits.neuron import neuron
    from attention_atlas.edits.patch import patch
    from attention_atlas.edits.pattern import pattern
    from attention_atlas.edits.scale import scale
    from attention_atlas.lab.causal.study import causal
    from attention_atlas.lab.local.only import only_heads
    from attention_atlas.lab.patching.study import patching
    from attention_atlas.measure.compare import compare
    from attention_atlas.measure.kinds import classify
    from attention_atlas.names.errors import (
        AtlasError,
        InputError,
        ModelError,
        PickError,
        StoreError,
    )
    from attention_atlas.names.head import Head
    from attention_atlas.page.hosts.view_object import View
    from attention_atlas.page.hosts.views import (
        head_view,
        heads_view,
        image_view,
        map_view,
        matrix_view,
        model_view,
        neuron_view,
        text_view,
    )
    from attention_atlas.record.prove.check import check
    from attention_atlas.ways.bertviz import from_bertviz
    from attention_atlas.ways.headvis_read import from_headvis
    from attention_atlas.ways.headvis_write import to_headvis
    from attention_atlas.ways.plain_arrays import to_arrays
    from attention_atlas.ways.transformer_lens import from_transformer_lens

__all__ = [
    "Atlas",
    "AtlasError",
    "Head",
    "InputError",
    "ModelError",
    "PickError",
    "StoreError",
    "View",
    "ablate",
    "capture",
    "causal",
    "check",
    "classify",
    "compare",
    "edit",
    "from_bertviz",
    "from_headvis",
    "from_transformer_lens",
    "head_view",
    "heads_view",
    "image_view",
    "map_view",
    "mask",
    "matrix_view",
    "model_view",
    "neuron",
    "neuron_view",
    "only_heads",
    "open",
    "patch",
    "patching",
    "pattern",
    "ray",
    "scale",
    "text_view",
    "to_arrays",
    "to_headvis",
]

# Where each public name lives (without a name: the module itself); loaded when first asked for, so
# that importing costs nothing.
_HOMES = {
    "Atlas": ("atlas", "Atlas"),
    "AtlasError": ("names.errors", "AtlasError"),
    "Head": ("names.head", "Head"),
    "InputError": ("names.errors", "InputError"),
    "ModelError": ("names.errors", "ModelError"),
    "PickError": ("names.errors", "PickError"),
    "StoreError": ("names.errors", "StoreError"),
    "View": ("page.hosts.view_object", "View"),
    "ablate": ("edits.ablate", "ablate"),
    "capture": ("atlas", "capture"),
    "causal": ("lab.causal.study", "causal"),
    "check": ("record.prove.check", "check"),
    "classify": ("measure.kinds", "classify"),
    "compare": ("measure.compare", "compare"),
    "edit": ("edits.apply", "edit"),
    "from_bertviz": ("ways.bertviz", "from_bertviz"),
    "from_headvis": ("ways.headvis_read", "from_headvis"),
    "from_transformer_lens": ("ways.transformer_lens", "from_transformer_lens"),
    "head_view": ("page.hosts.views", "head_view"),
    "map_view": ("page.hosts.views", "map_view"),
    "matrix_view": ("page.hosts.views", "matrix_view"),
    "heads_view": ("page.hosts.views", "heads_view"),
    "image_view": ("page.hosts.views", "image_view"),
    "model_view": ("page.hosts.views", "model_view"),
    "neuron_view": ("page.hosts.views", "neuron_view"),
    "only_heads": ("lab.local.only", "only_heads"),
    "open": ("atlas", "open_atlas"),
    "mask": ("edits.mask", "mask"),
    "neuron": ("edits.neuron", "neuron"),
    "patch": ("edits.patch", "patch"),
    "patching": ("lab.patching.study", "patching"),
    "pattern": ("edits.pattern", "pattern"),
    "ray": ("ray", ""),
    "scale": ("edits.scale", "scale"),
    "text_view": ("page.hosts.views", "text_view"),
    "to_arrays": ("ways.plain_arrays", "to_arrays"),
    "to_headvis": ("ways.headvis_write", "to_headvis"),
}


# Where the functions that take other keywords pass them on to.
_OPTIONS = {
    "capture": ("record.write.capture:capture",),
    "causal": ("models.loading:Loading",),
    "check": ("models.loading:Loading",),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'attention_atlas' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    home = import_module(f"attention_atlas.{module}")
    public = getattr(home, attribute) if attribute else home
    if isfunction(public):
        public = checked(public, *_OPTIONS.get(name, ()))
    globals()[name] = public
    return public


def __dir__() -> list[str]:
    return __all__
