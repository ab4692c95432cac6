"""How does every attention call of a model pass through our code, without changing the model's?

For one pass the model runs with an implementation name by which transformers finds our attention
function (`registry`). Models that test for the name "eager" get it under that name. Hooks decide
what to do with the attention: recording, gates for gradients, edits.

    model ─ query, key, value, mask ─▶ hook.before … ─▶ attention ─▶ hook.after … ─▶ output ─ model
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn
from transformers import PreTrainedModel

from attention_atlas.names.errors import ModelError
from attention_atlas.record.watch import registry
from attention_atlas.record.watch.call import spread
from attention_atlas.record.watch.location import Location, Site, Surroundings
from attention_atlas.record.watch.log_sum_exp import WatchedKernel
from attention_atlas.record.watch.setting import Setting


@dataclass
class Passing:
    """One attention call that passes through the door.

    A hook replaces these tensors; it never writes into them, since they are the model's.
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
    weights: Tensor | None = None  # (B, H, N, M), in `after`, unless fused
    output: Tensor = field(init=False)  # (B, N, H, E), in `after`, before the output projection
    own_weights: Tensor | None = None  # the model's own, where a hook replaced them
    lse: Tensor | None = None  # (B, H, N) log-sum-exp of each row, in `after`, where it is known


class Hook(Protocol):
    """An object that reads or changes what passes through the door.

    before  may replace query, key, value, mask and options
    after   may replace weights or output; from new weights the door computes the output again,
            unless the hook replaced that too
    """

    @property
    def needs_weights(self) -> bool:
        """Tell whether attention must be run so that it gives its weights."""

    def before(self, passing: Passing) -> None: ...

    def after(self, passing: Passing) -> None: ...


class Door:
    """A context in which a model's attention passes through some hooks, in their order.

    way        "named": our function under our own name; "eager": under the name "eager"
    fast       run torch's fused attention, as a plain run does; else the model's own eager code
    sums       let fused attention tell the log-sum-exp of each row
    seed, gradients, free  as in Setting
    """

    def __init__(
        self,
        model: PreTrainedModel,
        hooks: Sequence[Hook],
        *,
        way: str = "named",
        fast: bool = False,
        sums: bool = False,
        seed: int = 0,
        gradients: bool = False,
        free: bool = False,
    ):
        registry.register()
        self.hooks = hooks
        self.fast = fast and not any(hook.needs_weights for hook in hooks)
        self._sums = sums
        self._by_eager = way == "eager"
        ours = registry.FAST if self.fast else registry.EAGER
        name = "eager" if self._by_eager else ours
        self._setting = Setting(model, name, seed, gradients, free)
        self._location = Location(model)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Set the model up for one forward pass, or for several as in `generate`."""
        with (
            self._setting.held(),
            registry.as_eager(self._by_eager),
            self._location,
            registry.interposing(self),
        ):
            yield

    def knows(self, module: nn.Module) -> bool:
        """Tell whether the module is part of this door's model."""
        return module in self._location.names

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Run one attention call between its hooks; return output and weights for the model."""
        where = self._location.of(module)
        passing = Passing(*where, module, self.fast, query, key, value, mask, options)
        for hook in self.hooks:
            hook.before(passing)
        self._run(passing)
        for hook in self.hooks:
            output, weights = passing.output, passing.weights
            hook.after(passing)
            if passing.weights is not weights:
                if passing.own_weights is None:
                    passing.own_weights = weights
                if passing.output is output:
                    passing.output = _moved(passing)
        return passing.output, passing.weights

    def _run(self, passing: Passing) -> None:
        """Run the attention of one call; set its output, and its weights or log-sum-exp."""
        tensors = (passing.query, passing.key, passing.value, passing.mask)
        if not self.fast:
            attended = registry.own_eager(passing.module, *tensors, **passing.options)
        elif self._sums:
            with WatchedKernel() as kernel:
                attended = registry.fused(passing.module, *tensors, **passing.options)
            passing.lse = kernel.rows(passing.query)
        else:
            attended = registry.fused(passing.module, *tensors, **passing.options)
        passing.output, passing.weights = attended


def _moved(passing: Passing) -> Tensor:
    """Return the output (B, N, H, E) of the weights, by the steps of eager attention."""
    weights, before = passing.weights, passing.output
    assert weights is not None
    value = spread(passing.value, weights.shape[1])
    output = (weights.to(value.dtype) @ value).transpose(1, 2).contiguous()
    if output.shape != before.shape:
        raise ModelError(
            f"the weights of {passing.site.module} cannot be changed: its output has shape "
            f"{tuple(before.shape)}, and one recomputed from weights has {tuple(output.shape)}"
        )
    return output
