"""The four ways to watch a model run, in the order they are tried.

named    our attention function, registered under our own name
eager    the same under the name "eager", for models that test for it
trace    the operations themselves, for models that write attention out by hand
outputs  what `output_attentions` returns: weights only, no vectors
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from attention_atlas.record.watch.call import Call, first_tensor
from attention_atlas.record.watch.door import Recorder, implementation
from attention_atlas.record.watch.tracer import Tracer

Run = Callable[[], Any]
WAYS = ("named", "eager", "trace", "outputs")


class Watch(Protocol):
    """Runs one batch (or `run`, a generation, say) and gives the attention calls it made."""

    def __call__(
        self, tensors: dict[str, Tensor], run: Callable[..., Any] | None = None
    ) -> list[Call]: ...


@contextmanager
def watching(
    model: PreTrainedModel,
    way: str,
    *,
    fast: bool = False,
    detail: bool = False,
    light: Callable[[Call], Call] | None = None,
    seed: int = 0,
) -> Iterator[Watch]:
    """The model, watched in one way for as many batches as are wanted.

    light  what is to stay of each call, when not all of it
    """

    def roll() -> None:  # the same dice for each batch, so that a resumed run is the same run
        torch.set_rng_state(torch_dice)
        np.random.set_state(numpy_dice)
        if model.device.type != "cpu":
            torch.manual_seed(seed)  # of all devices; slower than the line above

    def returned(tensors: dict[str, Tensor], run: Any = None) -> list[Call]:
        roll()
        calls = output_calls(model(**tensors, output_attentions=True))
        if any(call.weights is not None and call.weights.dim() > 4 for call in calls):
            raise ValueError("the maps it returns are cut into blocks of its own")
        return calls

    def traced(tensors: dict[str, Tensor], run: Any = None) -> list[Call]:
        roll()
        tracer = Tracer(model, batch=len(next(iter(tensors.values()))), detail=detail)
        with tracer:  # only now: it would follow our own arithmetic too
            (run or model)(**tensors)
        return tracer.take() if light is None else [light(call) for call in tracer.take()]

    with quiet_eval(model, seed):
        torch_dice, numpy_dice = torch.get_rng_state(), np.random.get_state()
        if way == "outputs":
            with implementation(model, "eager"):
                yield returned
        elif way == "trace":
            yield traced
        else:
            recorder = Recorder(model, way=way, fast=fast, detail=detail, light=light)

            def recorded(tensors: dict[str, Tensor], run: Any = None) -> list[Call]:
                roll()
                recorder.take()  # whatever ran in between is not ours to keep
                (run or model)(**tensors)
                return recorder.take()

            with recorder:
                yield recorded


def observe(
    model: PreTrainedModel,
    tensors: dict[str, Tensor],
    way: str,
    *,
    fast: bool = False,
    detail: bool = False,
    seed: int = 0,
) -> list[Call]:
    """The attention calls of one forward pass."""
    with watching(model, way, fast=fast, detail=detail, seed=seed) as look:
        return look(tensors)


@dataclass
class Plain:
    """One plain run under eager attention, and what three witnesses say of it."""

    outputs: dict[str, list[Tensor]]  # by module
    traced: list[Call]
    returned: list[Call]  # the maps of `output_attentions`


def plain_run(
    model: PreTrainedModel, tensors: dict[str, Tensor], modules: set[str], seed: int = 0
) -> Plain:
    """All witnesses in one pass where the model bears them together, else each by itself.

    Tracer and maps are witnesses only, so whatever way a model has of defeating them is no error.
    """
    tracer = Tracer(model, batch=len(next(iter(tensors.values()))))
    try:
        with quiet_eval(model, seed), module_outputs(model, modules) as outputs, tracer:
            returned = output_calls(model(**tensors, output_attentions=True))
        return Plain(outputs, tracer.take(), returned)
    except Exception:
        outputs = plain_outputs(model, tensors, modules, seed, name="eager")
        try:
            return Plain(outputs, observe(model, tensors, "trace", seed=seed), [])
        except Exception:
            return Plain(outputs, [], [])


def plain_outputs(
    model: PreTrainedModel, tensors: dict[str, Tensor], modules: set[str], seed: int, name: str
) -> dict[str, list[Tensor]]:
    """What each of `modules` gave back in a plain run with the attention called `name`."""
    with (
        quiet_eval(model, seed),
        implementation(model, name),
        module_outputs(model, modules) as outputs,
    ):
        model(**tensors)
    return outputs


@contextmanager
def module_outputs(model: nn.Module, modules: set[str]) -> Iterator[dict[str, list[Tensor]]]:
    outputs: dict[str, list[Tensor]] = {name: [] for name in modules}

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if tensor is not None:
                outputs[name].append(tensor.detach().clone())

        return hook

    hooks = [model.get_submodule(name).register_forward_hook(keep(name)) for name in modules]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def quiet_eval(model: nn.Module, seed: int) -> Iterator[None]:
    """Evaluation mode, no gradient, the same dice each time; all put back after."""
    training = [module for module in model.modules() if module.training]
    dice = np.random.get_state()
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(seed)
            np.random.seed(seed)
            yield
    finally:
        np.random.set_state(dice)
        for module in training:
            module.training = True


def output_calls(outputs: Any, prefix: str = "") -> list[Call]:
    """The tensors of `output_attentions` as calls without vectors."""
    calls = []
    for name, value in outputs.items() if hasattr(outputs, "items") else ():
        if "attention" in name and isinstance(value, tuple | list):
            maps = list(_maps(value))
            calls += [
                _weights_only(prefix + name, number, len(maps), one)
                for number, one in enumerate(maps)
            ]
        elif hasattr(value, "items"):
            calls += output_calls(value, f"{name}.")
    return calls


def _maps(nested: Any) -> Iterator[Tensor]:
    for one in nested.values() if isinstance(nested, Mapping) else nested:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, tuple | list | Mapping):
            yield from _maps(one)


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
