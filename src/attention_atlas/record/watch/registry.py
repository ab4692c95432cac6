"""How is transformers made to call our attention function, only in our thread?

transformers finds its attention function by name. Ours is registered under our own names, with a
mask function (without one the mask is silently None). It calls what this thread has interposed, and
runs the model's own attention if nothing is.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.names.errors import ModelError

EAGER, FAST = "atlas_eager", "atlas_fast"
_active = threading.local()

Attention = Callable[..., tuple[Tensor, Tensor | None]]


class Interposed(Protocol):
    """An object that runs the attention of one model in place of transformers."""

    def knows(self, module: nn.Module) -> bool:
        """Tell whether the module is part of that model."""

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Run one attention call; return output and weights for the model."""


def _attend(plain: Attention) -> Attention:
    """Return the function that transformers calls; it calls `plain` in runs that are not ours."""

    def attend(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
        attention_mask: Tensor | None = None, **options: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        interposed: Interposed | None = getattr(_active, "interposed", None)
        if interposed is None or not interposed.knows(module):
            return plain(module, query, key, value, attention_mask, **options)
        return interposed.attend(module, query, key, value, attention_mask, options)

    return attend


def own_eager(module: nn.Module, *tensors: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    """Run the module's own eager attention; return output and weights."""
    return _eager_of(type(module).__mro__)(module, *tensors, **options)


def fused(module: nn.Module, *tensors: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    """Run torch's fused attention as transformers calls it; return output and no weights."""
    attention: Attention = ALL_ATTENTION_FUNCTIONS["sdpa"]
    return attention(module, *tensors, **options)


@cache
def _eager_of(classes: tuple[type, ...]) -> Attention:
    """Return the eager attention function of the file that defines a module's forward.

    classes  the module's own class first, then those that it inherits from
    """
    for cls in sorted(classes, key=lambda cls: "forward" not in vars(cls)):
        function: Attention | None = getattr(
            sys.modules.get(cls.__module__), "eager_attention_forward", None
        )
        if function is not None:
            return function
    raise LookupError(f"{classes[0].__name__} has no eager attention function of its own")


_OURS_EAGER, _OURS_FAST = _attend(own_eager), _attend(fused)


def register() -> None:
    """Register our names with transformers; they stay, since another thread may use them."""
    for name, function, kind in ((EAGER, _OURS_EAGER, "eager"), (FAST, _OURS_FAST, "sdpa")):
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[kind])


_claimed: set[int] = set()  # ids of models that are edited; under EXCLUSIVE


@contextmanager
def claimed(model: nn.Module) -> Iterator[None]:
    """Refuse to watch a model inside the block, since it is edited there."""
    again = id(model) in _claimed
    _claimed.add(id(model))
    try:
        yield
    finally:
        if not again:
            _claimed.discard(id(model))


def refuse_claimed(model: nn.Module) -> None:
    """Raise a ModelError if this thread edits the model, so that it cannot be watched."""
    with EXCLUSIVE:  # another thread's block is waited for
        if id(model) in _claimed:
            raise ModelError(
                f"{type(model).__name__} is being edited; capture or check it outside of that "
                "block, or give the edits to capture: aa.capture(…, edits=…)"
            )


@contextmanager
def interposing(interposed: Interposed) -> Iterator[None]:
    """Let all attention of this thread pass through `interposed` inside the block."""
    outer = getattr(_active, "interposed", None)
    _active.interposed = interposed
    try:
        yield
    finally:
        _active.interposed = outer


@contextmanager
def as_eager(wanted: bool) -> Iterator[None]:
    """Register our function as "eager" inside the block; it runs other threads' own attention."""
    functions = AttentionInterface._global_mapping
    before = functions.get("eager")
    if wanted:
        AttentionInterface.register("eager", _OURS_EAGER)
    try:
        yield
    finally:
        if wanted and before is None:
            functions.pop("eager", None)
        elif wanted:
            functions["eager"] = before
