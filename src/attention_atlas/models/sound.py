"""At which rate does a model hear, and how long is what it hears?"""

import math
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from attention_atlas.models.inputs import Input
from attention_atlas.models.load import Loaded


@dataclass(frozen=True)
class Heard:
    """The sound in a model's tensors, padding included."""

    seconds: float
    rate: int  # samples a second


def samples(loaded: Loaded, given: Input, rate: int) -> "np.ndarray[Any, Any]":
    """Return the samples of an input at the rate that the model takes."""
    audio = np.asarray(given.audio)
    if given.rate is None or given.rate == rate:
        return audio
    from scipy.signal import resample_poly  # slow to import, and seldom needed

    _say_resampled(loaded.name, given.rate, rate)
    common = math.gcd(given.rate, rate)
    resampled = resample_poly(audio, rate // common, given.rate // common)
    return np.asarray(resampled, dtype=audio.dtype)


@cache  # computed once for all sounds of a rate
def _say_resampled(name: str, there: int, wanted: int) -> None:
    print(
        f"sounds of {there} samples a second are resampled to {wanted}, which {name} takes",
        file=sys.stderr,
    )


def heard(tensors: dict[str, torch.Tensor], extractor: Any, given: int) -> Heard:
    """Measure what the extractor made of `given` samples."""
    rate = int(extractor.sampling_rate)
    if "input_values" in tensors and tensors["input_values"].ndim == 2:
        return Heard(tensors["input_values"].shape[1] / rate, rate)
    features, hop = tensors.get("input_features"), getattr(extractor, "hop_length", None)
    if features is not None and hop:
        bins = int(extractor.feature_size)
        frames = next((n for n in features.shape[1:] if n != bins), bins)
        return Heard(frames * hop / rate, rate)
    return Heard(given / rate, rate)


def frame_times(model: Any, sound: Heard, n: int) -> list[str]:
    """Name the n frames of a sound by the time at which each begins: 0.00 s, 0.02 s …"""
    step = sound.seconds / max(1, n)
    # Convolutions over samples leave the ends out; their strides are the true step.
    stride = getattr(model.config, "inputs_to_logits_ratio", None)
    if stride and abs(sound.seconds * sound.rate / stride - n) <= 2:
        step = stride / sound.rate
    digits = max(2, math.ceil(-math.log10(step)))
    return [f"{index * step:.{digits}f} s" for index in range(n)]
