"""How does a pass of a model stop when nobody waits for its answer any more?

Before each layer it is asked whether the answer is still wanted. Other threads that run the same
model are asked nothing: what is wanted is known in the thread of the work alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.nn import Module, ModuleList

from attention_atlas.names.wanted import stop_if_unwanted


@contextmanager
def stoppable(model: Module) -> Iterator[None]:
    """Let passes of a model inside the block raise an UnwantedError between two layers."""
    lists = [module for module in model.modules() if isinstance(module, ModuleList)]
    hooks = [layer.register_forward_pre_hook(_ask) for layers in lists for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _ask(*_: Any) -> None:
    stop_if_unwanted()
