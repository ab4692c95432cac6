"""Does the attention of a batch explain its output, and where is fp16 too coarse?"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from attention_atlas.names.errors import ModelError
from attention_atlas.record.places.streams import Ends
from attention_atlas.record.prove.layer_errors import worst
from attention_atlas.record.prove.on_disk import Kept, strongest
from attention_atlas.record.prove.spot_check import ROUNDING_LIMIT, spot_checks
from attention_atlas.record.watch.call import Sample
from attention_atlas.record.watch.layers import LayerCalls
from attention_atlas.record.write.plan import CapturePlan
from attention_atlas.store.manifest import Rows

Sampled = tuple[LayerCalls, str, Sample]  # a sample, with its layer and module
Alike = tuple[Ends, int, int, torch.Size, torch.device]  # streams and shape of a sample


@dataclass
class Checked:
    """What the sampled rows of a batch show."""

    error: float = 0.0  # the worst of their output
    coarse: set[str] = field(default_factory=set)  # modules for which fp16 is too coarse
    rows: Rows = field(default_factory=lambda: Rows(0, 0))


def check_batch(layers: list[LayerCalls], plan: CapturePlan, real: dict[str, Tensor]) -> Checked:
    """Return what the samples of a batch show; raise a ModelError if one is not explained.

    real  (B, N) bool for each known stream: which places are not padding
    """
    checked = Checked()
    for (ends, *_), sampled in _by_shape(layers, plan).items():
        samples = [sample for *_, sample in sampled]
        errors_of = spot_checks(samples, real.get(ends.queries), real.get(ends.keys))
        for (layer, module, _), errors in zip(sampled, errors_of, strict=True):
            checked.error = worst(checked.error, errors.output)
            checked.rows += Rows(errors.rows, errors.of)
            _refuse_unexplained(layer, errors.output, plan)
            if errors.rounding > ROUNDING_LIMIT:
                checked.coarse.add(module)
    return checked


def _by_shape(layers: list[LayerCalls], plan: CapturePlan) -> dict[Alike, list[Sampled]]:
    """Return the samples of some layers; those that can be looked at together are together."""
    by_shape: dict[Alike, list[Sampled]] = {}
    for layer in layers:
        ends = plan.ends[layer.tower_key, layer.number]
        for call in (call for calls in layer.steps for call in calls):
            for sample in call.samples:
                looked = sample.looked
                alike = (ends, sample.batch, sample.queries, looked.shape, looked.device)
                by_shape.setdefault(alike, []).append((layer, call.module, sample))
    return by_shape


def _refuse_unexplained(layer: LayerCalls, error: float, plan: CapturePlan) -> None:
    if not error <= max(1e-4, 8 * plan.bound):
        raise ModelError(
            f"layer {layer.number} of {plan.names[layer.tower_key]} gave an output that "
            f"its attention does not explain (off by {error:.1e}); the "
            "capture was stopped, since its receipt would not be true"
        )


def strongest_weights(
    layers: list[LayerCalls], plan: CapturePlan, numbers: list[int], real: dict[str, Tensor]
) -> dict[str, dict[str, Kept]]:
    """Return, by number and layer, the strongest weights of a batch's inputs that were cut."""
    kept: dict[str, dict[str, Kept]] = {}
    for layer in layers:
        ends = plan.ends[layer.tower_key, layer.number]
        name = f"{plan.names[layer.tower_key]}.L{layer.number}"
        samples = [sample for call in layer.steps[0] for sample in call.samples]
        for place, number in enumerate(numbers):
            if number in plan.cut and len(samples) == 1 and samples[0].batch == len(numbers):
                sides = (real.get(ends.queries), real.get(ends.keys))
                kept.setdefault(str(number), {})[name] = strongest(samples[0], place, *sides)
    return kept
