"""In which ways can a model be watched? There are four, in the order in which they are tried.

named    our attention function, registered under our own name
eager    the same under the name "eager", for models that test for it
trace    the operations themselves, for models that do not call an attention function
outputs  what `output_attentions` returns: weights only, no vectors
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor
from transformers import PreTrainedModel

from attention_atlas.record.watch.call import Call, Light
from attention_atlas.record.watch.door import Door, Hook
from attention_atlas.record.watch.recorder import Recorder
from attention_atlas.record.watch.registry import refuse_claimed
from attention_atlas.record.watch.returned import output_calls, without_new_hooks
from attention_atlas.record.watch.setting import Setting
from attention_atlas.record.watch.tracer import Tracer

WAYS = ("named", "eager", "trace", "outputs")


class Watch(Protocol):
    """A function that runs one batch (or `run`, such as a generation) and returns its calls."""

    def __call__(
        self, tensors: dict[str, Tensor], run: Callable[..., Any] | None = None
    ) -> list[Call]: ...


def watching(
    model: PreTrainedModel,
    way: str,
    *,
    fast: bool = False,
    detail: bool = False,
    light: Light | None = None,
    seed: int = 0,
    hooks: Sequence[Hook] = (),
    late: Sequence[Hook] = (),
) -> Watch:
    """Prepare to watch a model in one way; return the function that runs it, batch by batch.

    Each batch starts from the same random numbers, so a resumed run is the same run. Between
    batches the model is as it was.

    light  a function that reduces calls to what is kept; None keeps all of it
    hooks  change each call before it is recorded; only in the first two ways
    late   change what the heads move after it is recorded; not in the last way
    """
    refuse_claimed(model)
    if way == "outputs":
        return _returned(model, seed)
    if way == "trace":
        return _traced(model, detail, light, seed, late)
    recorder = Recorder(detail=detail, light=light)
    door = Door(model, [*hooks, recorder, *late], way=way, fast=fast, sums=not detail, seed=seed)
    spared = without_logits(model)

    def recorded(tensors: dict[str, Tensor], run: Callable[..., Any] | None = None) -> list[Call]:
        recorder.forget()
        with door.open():
            if run is None:
                model(**{**spared, **tensors})
            else:
                run(**tensors)
            return recorder.take()

    return recorded


def without_logits(model: PreTrainedModel) -> dict[str, Any]:
    """Return arguments with which a pass computes no logits and keeps no cache, where it can.

    Neither enters attention, and for 8,192 tokens and 49,152 words the logits alone take 1.6 GB.
    """
    known = inspect.signature(model.forward).parameters
    wanted = {"logits_to_keep": 1, "use_cache": False}
    return {name: value for name, value in wanted.items() if name in known}


def _returned(model: PreTrainedModel, seed: int) -> Watch:
    eager = Setting(model, "eager", seed)

    def returned(tensors: dict[str, Tensor], run: Callable[..., Any] | None = None) -> list[Call]:
        with eager.held(), without_new_hooks(model):
            calls = output_calls(model(**tensors, output_attentions=True))
        if any(call.weights is not None and call.weights.dim() > 4 for call in calls):
            raise ValueError("it returns its maps in blocks")
        return calls

    return returned


def _traced(
    model: PreTrainedModel,
    detail: bool,
    light: Light | None,
    seed: int,
    late: Sequence[Hook],
) -> Watch:
    eager = Setting(model, "eager", seed)

    def traced(tensors: dict[str, Tensor], run: Callable[..., Any] | None = None) -> list[Call]:
        batch = len(next(iter(tensors.values())))
        tracer = Tracer(model, batch=batch, detail=detail, hooks=late)
        with eager.held():
            with tracer:  # no longer than this: it would record our own arithmetic too
                (run or model)(**tensors)
            calls = tracer.take()
            return calls if light is None else light(calls)

    return traced


def observe(
    model: PreTrainedModel,
    tensors: dict[str, Tensor],
    way: str,
    *,
    fast: bool = False,
    detail: bool = False,
    seed: int = 0,
) -> list[Call]:
    """Watch one forward pass; return its attention calls."""
    return watching(model, way, fast=fast, detail=detail, seed=seed)(tensors)
