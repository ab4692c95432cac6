"""How does transformers come to call our attention function, in our thread and no other?

transformers looks its attention function up by name. Ours is registered under names of our own,
with a mask function beside it (without one the mask is silently None). It asks what this thread has
interposed, and runs the model's own attention where that is nothing.
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

EAGER, FAST = "atlas_eager", "atlas_fast"
_active = threading.local()

Attention = Callable[..., tuple[Tensor, Tensor | None]]


class Interposed(Protocol):
    """What runs the attention of one model in place of transformers."""

    def knows(self, module: nn.Module) -> bool:
        """Whether the module is part of that model."""

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Run one attention; gives output and weights as the model wants them."""


def _attend(plain: Attention) -> Attention:
    """The function that transformers calls; `plain` is for runs that are none of ours."""

    def attend(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
        attention_mask: Tensor | None = None, **options: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        here: Interposed | None = getattr(_active, "interposed", None)
        if here is None or not here.knows(module):
            return plain(module, query, key, value, attention_mask, **options)
        return here.attend(module, query, key, value, attention_mask, options)

    return attend


def own_eager(module: nn.Module, *tensors: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    """Run the eager attention that the module itself would run."""
    return _eager_of(type(module).__mro__)(module, *tensors, **options)


def fused(module: nn.Module, *tensors: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    """Run torch's fused attention as transformers calls it; it gives no weights."""
    found: Attention = ALL_ATTENTION_FUNCTIONS["sdpa"]
    return found(module, *tensors, **options)


@cache
def _eager_of(classes: tuple[type, ...]) -> Attention:
    """The eager attention function of the file that a module's forward was written in.

    classes  the module's own class first, then those that it inherits from
    """
    for cls in sorted(classes, key=lambda cls: "forward" not in vars(cls)):
        found: Attention | None = getattr(
            sys.modules.get(cls.__module__), "eager_attention_forward", None
        )
        if found is not None:
            return found
    raise LookupError(f"{classes[0].__name__} has no eager attention function of its own")


_OURS_EAGER, _OURS_FAST = _attend(own_eager), _attend(fused)


def register() -> None:
    """Make our names known to transformers; they stay, for another thread may be using them."""
    for name, function, kind in ((EAGER, _OURS_EAGER, "eager"), (FAST, _OURS_FAST, "sdpa")):
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[kind])


@contextmanager
def interposing(interposed: Interposed) -> Iterator[None]:
    """Let what this thread runs pass through `interposed`."""
    outer = getattr(_active, "interposed", None)
    _active.interposed = interposed
    try:
        yield
    finally:
        _active.interposed = outer


@contextmanager
def as_eager(wanted: bool) -> Iterator[None]:
    """Our function under the name "eager" for one pass; other threads get their own through it."""
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
