"""What does each module of a model return while the model runs?"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from torch import Tensor, nn

from attention_atlas.record.watch.call import first_tensor

Keep = Callable[[nn.Module, Any], None]  # called with a module and its output


@contextmanager
def outputs_told(listeners: Iterable[tuple[nn.Module, Keep]]) -> Iterator[None]:
    """Call each function with the outputs of its module in this thread."""
    thread = get_ident()

    def hook_of(keep: Keep) -> Callable[..., None]:
        def hook(module: nn.Module, _args: Any, output: Any) -> None:
            if get_ident() == thread:
                keep(module, output)

        return hook

    hooks = [module.register_forward_hook(hook_of(keep)) for module, keep in listeners]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def module_outputs(model: nn.Module, modules: set[str]) -> Iterator[dict[str, list[Tensor]]]:
    """Record copies of the outputs of some modules; yield them by path."""
    outputs: dict[str, list[Tensor]] = {name: [] for name in modules}

    def keep_in(kept: list[Tensor]) -> Keep:
        def keep(_module: nn.Module, output: Any) -> None:
            tensor = first_tensor(output)
            if tensor is not None:
                kept.append(tensor.detach().clone())

        return keep

    with outputs_told([(model.get_submodule(name), keep_in(outputs[name])) for name in modules]):
        yield outputs
