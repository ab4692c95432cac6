"""Does the attention of a batch explain its output, and where is fp16 too coarse?"""

from torch import Tensor

from attention_atlas.names.errors import ModelError
from attention_atlas.record.places.streams import Ends
from attention_atlas.record.prove.layer_errors import worst
from attention_atlas.record.prove.spot_check import spot_check
from attention_atlas.record.watch.call import Sample
from attention_atlas.record.watch.layers import LayerCalls
from attention_atlas.record.write.plan import CapturePlan

# fp16 must keep weights within 1e-3 of the model's; for sampled rows the limit is half of that.
ROUNDING_LIMIT = 5e-4


def check_batch(
    layers: list[LayerCalls], plan: CapturePlan, real: dict[str, Tensor]
) -> tuple[float, set[str]]:
    """Return the worst error in a batch's samples, and the modules for which fp16 is too coarse.

    real  (B, N) bool for each known stream: which places are not padding
    """
    error, coarse = 0.0, set[str]()
    samples: dict[Ends, list[tuple[LayerCalls, str, Sample]]] = {}
    for layer in layers:
        of_ends = samples.setdefault(plan.ends[layer.tower_key, layer.number], [])
        for call in (call for calls in layer.steps for call in calls):
            of_ends += [(layer, call.module, sample) for sample in call.samples]
    for ends, of_ends in samples.items():
        alone = [sample for _, _, sample in of_ends]
        errors = spot_check(alone, real.get(ends.queries), real.get(ends.keys))
        for (layer, module, _), off in zip(of_ends, errors, strict=True):
            error = worst(error, off.output)
            if not off.output <= max(1e-4, 8 * plan.bound):
                raise ModelError(
                    f"layer {layer.number} of {plan.names[layer.tower_key]} gave an output that "
                    f"its attention does not explain (off by {off.output:.1e}); the "
                    "capture was stopped, since its receipt would not be true"
                )
            if off.rounding > ROUNDING_LIMIT:
                coarse.add(module)
    return error, coarse
