"""Which layer of the model is running at this moment?

Attention functions get their module but not their layer: `layer_idx` counts caches, shared modules
run many times, hybrids skip layers. So hooks keep the stack of modules that are running, and the
layer is the place in the outermost list of layers on that stack.
"""

import re
from dataclasses import dataclass
from threading import get_ident
from types import TracebackType
from typing import Any

from torch import nn
from transformers import PreTrainedModel

# How model authors name attention that looks at another sequence, where no attribute says so.
_CROSS = re.compile(r"cross|encoder_attn|encdec|enc_dec|encoder_decoder|attn2", re.IGNORECASE)


@dataclass(frozen=True)
class Site:
    """One visit to one attention module."""

    module: str  # its path in the model
    visit: int  # how often this forward pass ran it before: ALBERT has one module for all layers
    step: int  # which forward pass: 0, then one for each generated token


@dataclass(frozen=True)
class Surroundings:
    """The tower and the list of layers around an attention module."""

    tower: str  # path of the nearest enclosing model
    cross: bool  # whether it looks at another sequence
    place: tuple[str, int, int] | None  # (list of layers, index in it, its length)


class Location:
    """A context that keeps the stack of modules that this thread runs."""

    def __init__(self, model: nn.Module):
        self.model = model
        self.names = {module: name for name, module in model.named_modules()}
        # found once: a capture enters here for every batch
        self._followed = [module for module in self.names if not _attends_never(module)]
        self._thread = get_ident()
        self._step = -1
        self._visits: dict[nn.Module, int] = {}
        self._stack: list[nn.Module] = []
        self._hooks: list[Any] = []
        self._places: dict[nn.Module, tuple[str, int, int]] = {}
        both_sides = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
        sides = ("encoder", "decoder") if both_sides else ()
        self._towers = {
            module
            for module, name in self.names.items()
            if isinstance(module, PreTrainedModel) or name.rpartition(".")[2] in sides
        }
        for name, module in model.named_modules():
            if isinstance(module, nn.ModuleList):
                for index, child in enumerate(module):
                    self._places[child] = (name, index, len(module))

    def __enter__(self) -> "Location":
        self._thread = get_ident()
        self._step = -1
        self._visits.clear()
        for module in self._followed:
            self._hooks.append(module.register_forward_pre_hook(self._enter))
            self._hooks.append(module.register_forward_hook(self._leave, always_call=True))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._stack.clear()

    def _enter(self, module: nn.Module, _args: Any) -> None:
        if get_ident() != self._thread:
            return
        if module is self.model:
            if self._step >= 0:  # `generate` may run the encoder before the first pass of the whole
                self._visits.clear()
            self._step += 1
            self._stack.clear()
        self._stack.append(module)
        self._visits[module] = self._visits.get(module, -1) + 1

    def _leave(self, module: nn.Module, _args: Any, _output: Any) -> None:
        if get_ident() != self._thread:
            return
        while self._stack and self._stack.pop() is not module:
            pass

    def innermost(self) -> nn.Module:
        """Return the innermost running module that has submodules: its attention is running."""
        return next((m for m in reversed(self._stack) if any(m.children())), self.model)

    def of(self, module: nn.Module) -> tuple[Site, Surroundings]:
        """Return the site and the surroundings of the attention of `module` at this moment."""
        inner = (m for m in reversed(self._stack) if m in self._towers and m is not module)
        tower = next(inner, self.model)
        path = self.names.get(tower, "")
        name = self.names.get(module, "")
        leaf = name.removeprefix(path).lstrip(".")
        inside = (
            self._stack[self._stack.index(tower) + 1 :] if tower in self._stack else self._stack
        )
        place = next((self._places[m] for m in inside if m in self._places), None)
        cross = bool(getattr(module, "is_cross_attention", False)) or bool(_CROSS.search(leaf))
        site = Site(name, self._visits.get(module, 0), max(self._step, 0))
        return site, Surroundings(path, cross, place)


def _attends_never(module: nn.Module) -> bool:
    """Tell whether a module is a torch layer without submodules, as most modules are."""
    return type(module).__module__.startswith("torch.nn.") and not any(module.children())
