"""How does every attention of a model pass through our hands, without touching its code?

transformers looks its attention function up by name. Ours is registered under names of our own,
with a mask function beside it (without one the mask is silently None); a model runs under such a
name for one pass. Models that test for the name "eager" get our function under that name.

What is done with the attention that passes is the business of hooks: recording, gates for
gradients, edits.

    model ─ query, key, value, mask ─▶ hook.before … ─▶ attention ─▶ hook.after … ─▶ output ─ model
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from attention_atlas.names.errors import ModelError
from attention_atlas.record.watch.call import spread
from attention_atlas.record.watch.location import Location, Site, Surroundings
from attention_atlas.record.watch.setting import Setting

_EAGER, _FAST = "atlas_eager", "atlas_fast"
_here = threading.local()  # .door: the door that is open in this thread

Attention = Callable[..., tuple[Tensor, Tensor | None]]


@dataclass
class Passing:
    """One attention on its way through the door.

    A hook puts new tensors in place of these; it never writes into them, for they are the model's.
    """

    site: Site
    surroundings: Surroundings
    module: nn.Module
    fused: bool  # whether torch's fused attention is run, which gives no weights
    query: Tensor  # (B, H, N, D)
    key: Tensor  # (B, G, M, D)
    value: Tensor  # (B, G, M, E)
    mask: Tensor | None  # bool (True: seen) or additive, (B|1, H|1, N, M)
    options: dict[str, Any]  # what else the model gave: scaling, softcap, position_bias…
    weights: Tensor | None = None  # (B, H, N, M), once attention has run
    output: Tensor | None = None  # (B, N, H, E), before the output projection


class Hook(Protocol):
    """Reads or changes what passes through the door.

    before  may replace query, key, value, mask and options
    after   may replace weights or output; from new weights the door computes the output anew,
            unless the hook replaced that too
    """

    @property
    def needs_weights(self) -> bool:
        """Whether attention must be run so that it gives its weights."""

    def before(self, passing: Passing) -> None: ...

    def after(self, passing: Passing) -> None: ...


class Door:
    """The way of a model's attention through some hooks, in their order, while open.

    way        "named": our function under our own name; "eager": under the name "eager"
    fast       run torch's fused attention as a plain run would; else the model's own eager code
    seed, gradients  as in Setting
    """

    def __init__(
        self,
        model: PreTrainedModel,
        hooks: Sequence[Hook],
        *,
        way: str = "named",
        fast: bool = False,
        seed: int = 0,
        gradients: bool = False,
    ):
        _register()
        self.hooks = hooks
        self.fast = fast and not any(hook.needs_weights for hook in hooks)
        self._by_eager = way == "eager"
        name = "eager" if self._by_eager else _FAST if self.fast else _EAGER
        self._setting = Setting(model, name, seed, gradients=gradients)
        self._location = Location(model)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Let the model run: one forward pass, or several as `generate` makes them."""
        outer = getattr(_here, "door", None)
        with self._setting.held(), _as_eager(self._by_eager), self._location:
            _here.door = self
            try:
                yield
            finally:
                _here.door = outer

    def knows(self, module: nn.Module) -> bool:
        """Whether the module is part of this door's model."""
        return module in self._location.names

    def attend(self, passing: Passing) -> tuple[Tensor, Tensor | None]:
        """Run one attention between its hooks; gives output and weights as the model wants them."""
        for hook in self.hooks:
            hook.before(passing)
        run = ALL_ATTENTION_FUNCTIONS["sdpa"] if self.fast else _own_eager(type(passing.module))
        passing.output, passing.weights = run(
            passing.module, passing.query, passing.key, passing.value, passing.mask,
            **passing.options,
        )  # fmt: skip
        for hook in self.hooks:
            output, weights = passing.output, passing.weights
            hook.after(passing)
            if passing.weights is not weights and passing.output is output:
                passing.output = _moved(passing)
        return passing.output, passing.weights

    def passing(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
        options: dict[str, Any],
    ) -> Passing:  # fmt: skip
        """What the model asks for, and where in the model."""
        site, surroundings = self._location.of(module)
        return Passing(site, surroundings, module, self.fast, query, key, value, mask, options)


def _moved(passing: Passing) -> Tensor:
    """(B, N, H, E): what the weights move, by the steps and in the layout of eager attention."""
    weights, before = passing.weights, passing.output
    assert weights is not None and before is not None
    value = spread(passing.value, weights.shape[1])
    output = (weights.to(value.dtype) @ value).transpose(1, 2).contiguous()
    if output.shape != before.shape:
        raise ModelError(
            f"{passing.site.module} gives an output of {tuple(before.shape)} and its weights move "
            f"{tuple(output.shape)}, so its weights cannot be changed"
        )
    return output


def _attend(plain: Attention) -> Attention:
    """The function that transformers calls; `plain` is for runs that are none of ours."""

    def attend(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
        attention_mask: Tensor | None = None, **options: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        door: Door | None = getattr(_here, "door", None)
        if door is None or not door.knows(module):
            return plain(module, query, key, value, attention_mask, **options)
        return door.attend(door.passing(module, query, key, value, attention_mask, options))

    return attend


def _plain_eager(module: nn.Module, *tensors: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    return _own_eager(type(module))(module, *tensors, **options)


@cache
def _own_eager(kind: type[nn.Module]) -> Attention:
    """The eager attention function of the file that the module's forward was written in."""
    for cls in sorted(kind.__mro__, key=lambda cls: "forward" not in vars(cls)):
        found: Attention | None = getattr(
            sys.modules.get(cls.__module__), "eager_attention_forward", None
        )
        if found is not None:
            return found
    raise LookupError(f"{kind.__name__} has no eager attention function of its own")


_OURS_EAGER, _OURS_FAST = _attend(_plain_eager), _attend(ALL_ATTENTION_FUNCTIONS["sdpa"])


def _register() -> None:
    """Make our names known to transformers; they stay, for another thread may be using them."""
    for name, function, kind in ((_EAGER, _OURS_EAGER, "eager"), (_FAST, _OURS_FAST, "sdpa")):
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[kind])


@contextmanager
def _as_eager(wanted: bool) -> Iterator[None]:
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
