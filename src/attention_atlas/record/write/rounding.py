"""Is a batch what its attention explains, and for which modules is fp16 too coarse?"""

from torch import Tensor

from attention_atlas.names.errors import ModelError
from attention_atlas.record.places.streams import Ends
from attention_atlas.record.prove.layer_errors import worst
from attention_atlas.record.prove.spot_check import spot_check
from attention_atlas.record.watch.call import Sample
from attention_atlas.record.watch.layers import LayerCalls
from attention_atlas.record.write.plan import CapturePlan

# fp16 keeps weights within 1e-3 of the model's; sampled rows must do better than that by half.
ROUNDING_LIMIT = 5e-4


def check_batch(
    layers: list[LayerCalls], plan: CapturePlan, real: dict[str, Tensor]
) -> tuple[float, set[str]]:
    """Check the samples of a batch; gives the worst error and the modules fp16 is too coarse for.

    real  (B, N) bool for each known stream: which places are no padding
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
        for (layer, module, _), found in zip(of_ends, errors, strict=True):
            error = worst(error, found.output)
            if not found.output <= max(1e-4, 8 * plan.bound):
                raise ModelError(
                    f"layer {layer.number} of {plan.names[layer.tower_key]} gave an output that "
                    f"its attention does not explain (off by {found.output:.1e}); the capture was "
                    "stopped, since its receipt would not be true"
                )
            if found.rounding > ROUNDING_LIMIT:
                coarse.add(module)
    return error, coarse
