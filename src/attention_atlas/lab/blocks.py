"""Which blocks does a pass run, and how does a later pass take up what they gave?

A block is an outermost member of a list of layers. Blocks are found by running, in the order in
which they run. A later pass over the same inputs is the model's own forward pass, in which chosen
modules give what they gave before, once for each world, instead of running.

    embeddings ─ block 0 ─ block 1 ─┊─ block 2 ─ block 3 ─ norm ─ head
                 kept      kept     ┊  run again, with edits
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn


@dataclass
class KeptOutputs:
    """What modules gave in a pass, in the order in which they ended."""

    gave: dict[nn.Module, list[Any]] = field(default_factory=dict)  # one for each visit

    @property
    def once(self) -> bool:
        """Tell whether no module ran twice."""
        return all(len(outputs) == 1 for outputs in self.gave.values())


@contextmanager
def keeping_blocks(model: nn.Module) -> Iterator[KeptOutputs]:
    """Keep what each block gives in the passes inside the block."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    members = {member for each in lists for member in each}
    running: list[nn.Module] = []
    kept = KeptOutputs()

    def enter(module: nn.Module, _args: Any) -> None:
        running.append(module)

    def leave(module: nn.Module, _args: Any, output: Any) -> None:
        running.pop()
        if not running:
            kept.gave.setdefault(module, []).append(output)

    with ExitStack() as undo:
        for member in members:
            undo.callback(member.register_forward_pre_hook(enter).remove)
            undo.callback(member.register_forward_hook(leave).remove)
        yield kept


@contextmanager
def keeping(modules: Iterable[nn.Module]) -> Iterator[KeptOutputs]:
    """Keep what some modules give in the passes inside the block."""
    kept = KeptOutputs()

    def leave(module: nn.Module, _args: Any, output: Any) -> None:
        kept.gave.setdefault(module, []).append(output)

    with ExitStack() as undo:
        for module in modules:
            undo.callback(module.register_forward_hook(leave).remove)
        yield kept


@contextmanager
def giving(outputs: Mapping[nn.Module, Callable[[], Any]]) -> Iterator[None]:
    """Make modules give what a function returns, instead of running, inside the block."""
    with ExitStack() as undo:
        for module, output in outputs.items():
            undo.callback(_restore, module, module.__dict__.get("forward"))
            object.__setattr__(module, "forward", partial(_give, output))
        yield


def _give(output: Callable[[], Any], *_args: Any, **_options: Any) -> Any:
    return output()


def _restore(module: nn.Module, forward: Any) -> None:
    if forward is None:
        del module.__dict__["forward"]
    else:
        object.__setattr__(module, "forward", forward)


def repeated(value: Any, worlds: int, size: int | None = None) -> Any:
    """Return a nested output with its rows once for each world: rows of world 0, of world 1, …

    size  rows of a batch; tensors of other length are left as they are; None: all are repeated
    """
    if isinstance(value, Tensor):
        if worlds == 1 or not value.dim() or (size is not None and len(value) != size):
            return value
        return value.expand(worlds, *value.shape).reshape(worlds * len(value), *value.shape[1:])
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(repeated(inner, worlds, size) for inner in value)
    if isinstance(value, dict):  # the outputs of transformers are dicts too
        return type(value)(
            **{str(name): repeated(inner, worlds, size) for name, inner in value.items()}
        )
    return value
