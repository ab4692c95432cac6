"""What do the linear layers of an attention module give for the first tokens of an input?"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

TOKENS = 8
Made = dict[str, list[tuple[nn.Module, Tensor]]]  # by attention module: layer, (tokens, width)


@contextmanager
def linear_outputs(model: nn.Module, modules: set[str]) -> Iterator[Made]:
    seen: Made = {}
    hooks = []
    for name in modules:
        try:
            owner = model.get_submodule(name)
        except AttributeError:  # a name from output_attentions, not a part of the model
            continue
        for inner in owner.modules():
            weight = getattr(inner, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2:
                hooks.append(inner.register_forward_hook(_keep(seen.setdefault(name, []))))
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _keep(into: list[tuple[nn.Module, Tensor]]) -> Any:
    def hook(module: nn.Module, _args: Any, output: Any) -> None:
        if isinstance(output, Tensor) and output.dim() >= 2:
            into.append((module, output.detach().reshape(-1, output.shape[-1])[:TOKENS].float()))

    return hook
