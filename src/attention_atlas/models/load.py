"""Which model, and what prepares its inputs?

A hub id, a folder, `builtin:NAME`, a .gguf file or a live object becomes `Loaded`. Weights are read
from safetensors or GGUF only: a pickle can run code. A live model is taken as it is, neither its
mode nor its device is touched.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedModel

from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.large import Large, add_adapter
from attention_atlas.models.locate import locate, refuse_gguf_without_reader
from attention_atlas.models.processors import find_processor, part
from attention_atlas.models.trouble import as_model_error, quiet_loading, same_dice, tell_missing
from attention_atlas.names.errors import ModelError

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_NUMBERED = re.compile(r"(.+?)\.\d+\.")


@dataclass(frozen=True)
class Loaded:
    """A model that can be run, and what turns inputs into its tensors."""

    model: Any
    processor: Any | None
    name: str
    revision: str | None
    missing: frozenset[str] = frozenset()  # tensors that its checkpoint lacks: set at random

    @property
    def tokenizer(self) -> Any:
        """Get the tokenizer inside the processor, or the processor if it is one, else None."""
        return part(self.processor, "tokenizer")


def load(
    model: Any,
    processor: Any | None = None,
    *,
    device: str = "auto",
    dtype: str | torch.dtype | None = None,
    trust_remote_code: bool = False,
    gguf_file: str | None = None,
    revision: str | None = None,
    device_map: str | None = None,
    bits: int | None = None,
    adapter: str | Path | None = None,
) -> Loaded:
    """Load a model with its processor; `dtype` unset means float32 on a CPU, else as stored."""
    large = Large(device_map, bits, adapter)
    large.check()
    if isinstance(model, tuple) and len(model) == 2:
        model, processor = model
    if isinstance(model, torch.nn.Module) and hasattr(model, "config"):
        large.refuse_live()
        return _live(model, processor, device)
    if not isinstance(model, str | Path):
        raise ModelError(
            f"a model of type {type(model).__name__} cannot be run; give a hub id, a folder, "
            "builtin:gpt or a transformers model"
        )
    place, name, gguf_file = locate(model, gguf_file)
    where: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if revision:
        where["revision"] = revision
    if gguf_file:
        where["gguf_file"] = gguf_file
        refuse_gguf_without_reader(name)
    target = _device(device)
    with EXCLUSIVE, as_model_error(name), quiet_loading(), same_dice():
        config = AutoConfig.from_pretrained(place, **where)
        network, info = _class_of(config, gguf_file).from_pretrained(
            place,
            dtype=_dtype(dtype, target),
            output_loading_info=True,
            **({} if gguf_file else {"use_safetensors": True}),
            **large.options(config, target),
            **where,
        )
        if not hasattr(network, "hf_device_map"):  # else its weights are where they belong
            network = network.to(target)
        network.eval()
        if adapter is not None:
            name = f"{name} + {add_adapter(network, adapter)}"
    missing = frozenset(info["missing_keys"])
    _refuse_random_layers(network, missing, name)
    tell_missing(name, missing)
    with EXCLUSIVE:
        processor = find_processor(place, **where) if processor is None else _processor(processor)
    commit = getattr(network.config, "_commit_hash", None)
    return Loaded(network, processor, name, commit, missing)


def _live(model: torch.nn.Module, processor: Any | None, device: str) -> Loaded:
    if device != "auto" and not hasattr(model, "hf_device_map"):
        model = model.to(_device(device))
    revision = getattr(model.config, "_commit_hash", None)
    return Loaded(model, _processor(processor), type(model).__name__, revision)


def _processor(given: Any | None) -> Any | None:
    """Return a given processor, or load it by name."""
    if not isinstance(given, str | Path):
        return given
    processor = find_processor(given)
    if processor is None:
        raise ModelError(f"{given} has no tokenizer or processor; check the folder or hub id")
    return processor


def _class_of(config: Any, gguf_file: str | None) -> Any:
    """Find the class that the checkpoint was saved from, so that generation has its head.

    The name comes from a file, so it counts only if it names a model class.
    """
    wanted = (getattr(config, "architectures", None) or [None])[0]
    for auto, code in (getattr(config, "auto_map", None) or {}).items():
        if wanted and str(code).endswith(f".{wanted}"):
            return getattr(transformers, auto, AutoModel)
    named = getattr(transformers, wanted, None) if wanted else None
    if isinstance(named, type) and issubclass(named, PreTrainedModel):
        return named
    return AutoModelForCausalLM if gguf_file else AutoModel


def _device(asked: str) -> torch.device:
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
    except RuntimeError as error:
        raise ModelError(
            f"no device is called {asked!r}; give auto, cpu, cuda or cuda:1"
        ) from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ModelError(
            f"{asked} was asked for and there are {torch.cuda.device_count()} CUDA devices; "
            "give cpu or auto"
        )
    return device


def _dtype(asked: str | torch.dtype | None, device: torch.device) -> Any:
    """Choose the precision; unset means float32 on a CPU, where half is slow and inexact."""
    if asked is None:
        return torch.float32 if device.type == "cpu" else "auto"
    if isinstance(asked, torch.dtype) or asked == "auto":
        return asked
    if asked not in _DTYPES:
        raise ModelError(f"no dtype is called {asked!r}; give auto, {', '.join(_DTYPES)}")
    return _DTYPES[asked]


def _refuse_random_layers(model: torch.nn.Module, missing: Iterable[str], name: str) -> None:
    """Refuse a model whose layers have random weights; a missing head or pooler is harmless."""
    lost = sorted(key for key in missing if _is_in_layer(model, key))
    if lost:
        raise ModelError(
            f"the weights of {name} lack {len(lost)} tensors of its layers, such as {lost[0]}; "
            "give weights that belong to its config"
        )


def _is_in_layer(model: torch.nn.Module, key: str) -> bool:
    numbered = _NUMBERED.match(key)
    return numbered is not None and isinstance(
        model.get_submodule(numbered[1]), torch.nn.ModuleList
    )
