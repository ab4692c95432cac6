"""Which inputs run together, and how many plain passes does a sweep cost?

A plain pass is one pass of the model over all inputs. Costs are counted in the weights of matrices
that an input meets: of the blocks that run again, and of the head that predicts.
"""

from collections.abc import Sequence

from torch import nn

from attention_atlas.lab.causal.sweep import Sweep
from attention_atlas.lab.causal.task import Group, joined
from attention_atlas.lab.replay import Replay

TOKENS = {"cpu": 2048, "cuda": 16_384}  # of one batch of worlds
NUMBERS = {"cpu": 1 << 25, "cuda": 1 << 29}  # of the logits of one batch: 128 MiB on a CPU
GRADIENTS = 3.0  # plain passes that one pass forward and back costs


def grouped(inputs: Sequence[Group], rows: int, sweep: Sweep) -> list[Group]:
    """Return inputs of one shape together, as many as fit into a batch.

    rows  how often each input is in the batch
    """
    shapes: dict[tuple[object, ...], list[Group]] = {}
    for each in inputs:
        shape = tuple((name, tensor.shape) for name, tensor in each.tensors.items())
        shapes.setdefault(shape, []).append(each)
    groups = []
    for alike in shapes.values():
        most = 1 if sweep.known.alone else _most(alike, rows, sweep)
        groups += [joined(alike[i : i + most]) for i in range(0, len(alike), most)]
    return groups


def _most(alike: Sequence[Group], rows: int, sweep: Sweep) -> int:
    """Return how many inputs of a shape fit into a batch."""
    counted = max(int(each.counted.sum()) for each in alike)
    places = counted if sweep.head is not None else alike[0].counted.shape[1]
    words = getattr(sweep.loaded.model.config.get_text_config(), "vocab_size", 1)
    logits = NUMBERS[_kind(sweep)] // max(1, rows * places * words)
    return max(1, min(sweep.tokens // (rows * alike[0].long), logits))


def tokens_of(model: nn.Module) -> int:
    """Return how many tokens one batch of worlds has on the model's device."""
    device = next(model.parameters()).device.type
    return TOKENS.get(device, TOKENS["cuda"])


def _kind(sweep: Sweep) -> str:
    return "cpu" if str(sweep.loaded.model.device.type) == "cpu" else "cuda"


def exact_cost(sweep: Sweep, replay: Replay, group: Group) -> float:
    """Return how many plain passes the total effects of all heads cost.

    group  what share of its tokens the head that predicts sees, stands for all inputs
    """
    layers = sweep.known.layers
    if not replay.restarts:
        return float(sum(layer.heads for layer in layers))
    blocks = [_weights(block) for block in replay.blocks]
    output = sweep.head or sweep.loaded.model.get_output_embeddings()
    head = 0 if output is None else _weights(output)
    whole = sum(blocks) + head
    share = 1.0 if sweep.head is None else float(group.counted.double().mean())
    costs = [layer.heads * (sum(blocks[replay.starts[layer] :]) + share * head) for layer in layers]
    return sum(costs) / whole


def _weights(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters() if weight.dim() > 1)
