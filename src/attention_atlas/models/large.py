"""How does a model too large for one device, or changed by an adapter, get into memory?

device_map  spread over all GPUs, the CPU and the disk, as transformers does it
bits        weights of 8 or 4 bits; attention itself runs in the model's own precision
adapter     a PEFT adapter on top, from safetensors only: a pickle can run code
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from transformers import BitsAndBytesConfig

from attention_atlas.names.errors import ModelError

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")


@dataclass(frozen=True)
class Large:
    """What was asked for beyond one device and whole weights."""

    device_map: str | None = None
    bits: int | None = None
    adapter: str | Path | None = None

    def check(self) -> None:
        """Raise a ModelError for a choice that is not possible here."""
        if self.device_map is not None and self.device_map not in _MAPS:
            raise ModelError(
                f"no device map is called {self.device_map!r}; give {', '.join(_MAPS)}"
            )
        if self.bits not in (None, 4, 8):
            raise ModelError(f"weights of {self.bits} bits were asked for; give 4 or 8")
        if self.device_map or self.bits:
            _refuse_without("accelerate", "a model that is split or quantised", "large")
        if self.bits:
            _refuse_without("bitsandbytes", f"weights of {self.bits} bits", "large")
        if self.adapter is not None:
            _refuse_without("peft", "an adapter", "large")

    def refuse_live(self) -> None:
        """Raise a ModelError if a model that is loaded already shall be loaded otherwise."""
        if self != Large():
            raise ModelError(
                "device_map, bits and adapter are for a model given by name; one given as an "
                "object is taken as it is"
            )

    def options(self, config: Any, target: torch.device) -> dict[str, Any]:
        """Return the arguments of `from_pretrained` that place and quantise the weights."""
        options: dict[str, Any] = {}
        if self.bits:
            options["quantization_config"] = BitsAndBytesConfig(
                load_in_8bit=self.bits == 8, load_in_4bit=self.bits == 4
            )
        if self.device_map:
            options["device_map"] = self.device_map
        elif self.bits or getattr(config, "quantization_config", None):
            options["device_map"] = {"": target}  # such weights cannot be moved later
        return options


def add_adapter(model: Any, adapter: str | Path, revision: str | None = None) -> str:
    """Put an adapter onto a model, switched on; return the adapter's name."""
    folder = Path(adapter).expanduser()
    if not folder.is_dir():
        if isinstance(adapter, Path) or folder.exists():
            raise ModelError(f"no folder is called {adapter}; give the folder of an adapter")
        wanted = [_CONFIG, _WEIGHTS]
        folder = Path(snapshot_download(str(adapter), allow_patterns=wanted, revision=revision))
    for name in (_CONFIG, _WEIGHTS):
        if not (folder / name).is_file():
            raise ModelError(
                f"adapter {Path(adapter).name} has no {name}; give a folder that PEFT wrote with "
                "save_pretrained (pickle weights are not loaded: they can run code)"
            )
    model.load_adapter(str(folder))
    return Path(adapter).name


def _refuse_without(package: str, what: str, extra: str) -> None:
    if find_spec(package) is None:
        raise ModelError(
            f"{what} needs {package}, which is not installed; "
            f"run: pip install attention-atlas[{extra}]"
        )
