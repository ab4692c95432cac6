"""In which state does a model run for us, and how is its own state restored?

Attention implementation, evaluation mode, gradients and random numbers are set for one pass and
restored after it. Between passes the model and the process are as they were.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.utils import logging

from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.names.errors import ModelError


class Setting:
    """The setting of a model's passes: made once, held for each pass.

    name       the attention implementation
    seed       of torch's and NumPy's random numbers, the same at the start of each pass
    gradients  whether the pass can be differentiated
    free       only the implementation is set; mode, gradients and random numbers are the caller's
    """

    def __init__(
        self,
        model: PreTrainedModel,
        name: str,
        seed: int = 0,
        gradients: bool = False,
        free: bool = False,
    ):
        self.model, self.seed, self.gradients, self.free = model, seed, gradients, free
        self._names = _names_under(model, name)
        self._modules = list(model.modules())  # found once: this is held for every batch
        self._torch_state = torch.Generator().manual_seed(seed).get_state()
        self._numpy_state = np.random.RandomState(seed).get_state()
        self._devices = sorted(
            {weight.device.index for weight in model.parameters() if weight.device.type == "cuda"}
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Apply this setting inside the block; no other thread runs or loads a model for us."""
        with EXCLUSIVE, self._implementation():
            if self.free:
                yield
                return
            with (
                self._evaluating(),
                self._random_numbers(),
                torch.set_grad_enabled(self.gradients),
            ):
                yield

    @contextmanager
    def _implementation(self) -> Iterator[None]:
        before = [(config, config._attn_implementation_internal) for config, _ in self._names]
        for config, name in self._names:
            config._attn_implementation_internal = name
        try:
            yield
        finally:
            now = [config._attn_implementation_internal for config, _ in self._names]
            for config, old in before:
                config._attn_implementation_internal = old
            if now != [name for _, name in self._names]:
                raise ModelError(
                    f"the attention implementation of {type(self.model).__name__} was changed "
                    "while it was read; change it before or after"
                )

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        training = [module for module in self._modules if module.training]
        for module in training:
            module.training = False
        try:
            yield
        finally:
            for module in training:
                module.training = True

    @contextmanager
    def _random_numbers(self) -> Iterator[None]:
        numpy_before = np.random.get_state()
        with torch.random.fork_rng(self._devices):
            torch.set_rng_state(self._torch_state)
            for device in self._devices:
                torch.cuda.default_generators[device].manual_seed(self.seed)
            np.random.set_state(self._numpy_state)
            try:
                yield
            finally:
                np.random.set_state(numpy_before)


def _names_under(model: PreTrainedModel, name: str) -> list[tuple[Any, str]]:
    """Return each config of a model, and the implementation that it gets for `name`."""
    with EXCLUSIVE:
        configs = configs_of(model)
        before = [config._attn_implementation_internal for config in configs]
        level = logging.get_verbosity()
        logging.set_verbosity_error()  # some models warn that they lack this implementation
        try:
            model.set_attn_implementation(name)
            return [(config, config._attn_implementation_internal) for config in configs]
        finally:
            logging.set_verbosity(level)
            for config, old in zip(configs, before, strict=True):
                config._attn_implementation_internal = old


def configs_of(model: PreTrainedModel) -> list[Any]:
    """Return the configs of a model and of all its submodels."""
    by_id: dict[int, Any] = {}

    def add(config: Any) -> None:
        if config is None or id(config) in by_id:
            return
        by_id[id(config)] = config
        for key in getattr(config, "sub_configs", {}):
            add(getattr(config, key, None))

    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            add(module.config)
    return list(by_id.values())


def runs_fused(model: PreTrainedModel) -> bool:
    """Tell whether plain runs of this model and all its submodels use torch's fused attention."""
    with EXCLUSIVE:  # another thread may be running it with another implementation
        return all(config._attn_implementation_internal == "sdpa" for config in configs_of(model))
