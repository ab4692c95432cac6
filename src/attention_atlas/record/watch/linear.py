"""What do the linear layers of an attention module return for the first tokens of an input?"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from attention_atlas.record.watch.module_outputs import Keep, outputs_told

TOKENS = 8
Made = dict[str, list[tuple[nn.Module, Tensor]]]  # by attention module: layer, (tokens, width)


@contextmanager
def linear_outputs(model: nn.Module, modules: set[str]) -> Iterator[Made]:
    """Record the outputs of the linear layers inside some attention modules; yield them."""
    outputs: Made = {}
    listeners = []
    for name in modules:
        try:
            owner = model.get_submodule(name)
        except AttributeError:  # a name from output_attentions, not a part of the model
            continue
        for inner in owner.modules():
            weight = getattr(inner, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2:
                listeners.append((inner, _keep_in(outputs.setdefault(name, []))))
    with outputs_told(listeners):
        yield outputs


def _keep_in(kept: list[tuple[nn.Module, Tensor]]) -> Keep:
    def keep(module: nn.Module, output: Any) -> None:
        if isinstance(output, Tensor) and output.dim() >= 2:
            kept.append((module, output.detach().reshape(-1, output.shape[-1])[:TOKENS].float()))

    return keep
