"""Which attention maps does a model itself return, when asked for `output_attentions`?"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from attention_atlas.record.watch.call import Call

_FLAG = "_output_capturing_hooks_installed"  # where transformers notes that it added hooks


@contextmanager
def without_new_hooks(model: nn.Module) -> Iterator[None]:
    """Take away the hooks that transformers leaves on a model that was asked for its maps."""
    before = [(module, set(module._forward_hooks), _FLAG in vars(module))
              for module in model.modules()]  # fmt: skip
    try:
        yield
    finally:
        for module, hooks, flagged in before:
            for key in set(module._forward_hooks) - hooks:
                del module._forward_hooks[key]
            if not flagged:
                vars(module).pop(_FLAG, None)


def output_calls(outputs: Any, prefix: str = "") -> list[Call]:
    """Return the tensors of `output_attentions` as calls without vectors."""
    calls = []
    for name, value in outputs.items() if hasattr(outputs, "items") else ():
        if "attention" in name and isinstance(value, tuple | list):
            maps = list(_maps(value))
            calls += [
                _weights_only(prefix + name, number, len(maps), weights)
                for number, weights in enumerate(maps)
            ]
        elif hasattr(value, "items"):
            calls += output_calls(value, f"{name}.")
    return calls


def _maps(nested: Any) -> Iterator[Tensor]:
    for item in nested.values() if isinstance(nested, Mapping) else nested:
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, tuple | list | Mapping):
            yield from _maps(item)


def _weights_only(name: str, number: int, total: int, weights: Tensor) -> Call:
    if weights.dim() == 3:
        weights = weights[:, None]
    nothing = weights.new_zeros(*weights.shape[:-1], 0)
    keys = weights.new_zeros(*weights.shape[:-2], weights.shape[-1], 0)
    return Call(
        module=f"{name}.{number}",
        tower=name.replace("attentions", "").strip("_."),
        cross="cross" in name,
        place=(name, number, total),
        visit=0,
        step=0,
        query=nothing,
        key=keys,
        value=keys,
        scale=1.0,
        weights=weights.detach(),
    )
