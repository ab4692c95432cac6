"""Is this the same model, the same inputs and the same options as before?

An interrupted capture is resumed only if its fingerprint, one hash, is equal.
"""

import hashlib
import json
from typing import Any

import numpy as np
import torch

from attention_atlas.models.inputs import Input
from attention_atlas.models.load import Loaded

_SAMPLE = 64


def fingerprint(loaded: Loaded, inputs: list[Input], options: dict[str, Any]) -> str:
    """Return a hash of the model, the inputs and the options."""
    digest = hashlib.sha256()
    digest.update(json.dumps(options, sort_keys=True, default=str).encode())
    digest.update(type(loaded.model).__name__.encode())
    for name, tensor in loaded.model.state_dict().items():
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        if name not in loaded.missing:  # those are random at each load
            digest.update(_sample(tensor))
    for given in inputs:
        digest.update(_input_bytes(given))
    return digest.hexdigest()


def _sample(tensor: torch.Tensor) -> bytes:
    """Return evenly spaced numbers of a tensor: cheap, and enough to tell two trainings apart."""
    flat = tensor.detach().reshape(-1)
    if flat.numel() == 0 or flat.is_meta:
        return b""
    step = max(1, flat.numel() // _SAMPLE)
    return bytes(flat[::step][:_SAMPLE].double().cpu().numpy().tobytes())


def _input_bytes(given: Input) -> bytes:
    words = [given.kind, given.text, given.second, given.source, *map(str, given.images)]
    parts = [json.dumps(words).encode(), json.dumps(dict(given.columns), default=str).encode()]
    if given.audio is not None:
        parts.append(np.ascontiguousarray(given.audio).tobytes())
    if given.cells is not None:
        parts.append(given.cells.to_csv().encode())
    for name, value in sorted((given.tensors or {}).items()):
        array = value.detach().cpu().float().numpy() if torch.is_tensor(value) else value
        parts.append(name.encode() + np.ascontiguousarray(array).tobytes())
    return b"\0".join(parts)
