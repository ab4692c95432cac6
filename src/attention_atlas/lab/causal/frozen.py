"""What does a head do straight to the output, with all that comes after it as in the plain run?

Every matrix of the blocks that run again gives what it gave in the plain pass, but for the output
projection of the edited layer. So what later attention and feed-forward layers add to the residual
stream is frozen, the layer's own feed-forward too; norms, sums and the head that predicts are the
model's own and see the change. In a model whose norms stand before its layers this is the same as
adding the head's change to what enters the last norm.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.inputs import freeze
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.prove.contributions import projection_of
from attention_atlas.lab.blocks import KeptOutputs, giving, keeping, repeated
from attention_atlas.lab.replay import Replay, same
from attention_atlas.names.errors import ModelError
from attention_atlas.record.prove.layer_errors import bound_of

Gives = dict[nn.Module, Callable[[], Any]]


def matrices_of(blocks: Iterable[nn.Module]) -> list[nn.Module]:
    """Return the modules of blocks that multiply by a matrix; refuse if one hides inside others."""
    matrices = []
    for module in dict.fromkeys(inner for block in blocks for inner in block.modules()):
        if isinstance(module, nn.Embedding) or not _has_matrix(module):
            continue
        if any(module.children()):
            raise ModelError(
                f"{type(module).__name__} has matrices besides modules, so what it adds cannot be "
                "frozen"
            )
        matrices.append(module)
    return matrices


def _has_matrix(module: nn.Module) -> bool:
    return any(weight.dim() >= 2 for weight in module.parameters(recurse=False))


def gives(kept: KeptOutputs, worlds: int, live: nn.Module | None = None) -> Gives:
    """Return what each matrix gives, once for each world, but for one that runs."""
    return {
        module: partial(repeated, outputs[0], worlds)
        for module, outputs in kept.gave.items()
        if module is not live
    }


@dataclass(frozen=True)
class Freezing:
    """How a model is frozen: its matrices, and the output projection of each layer."""

    matrices: tuple[nn.Module, ...]
    projections: dict[ModelLayer, nn.Module]


def find_freezing(replay: Replay) -> Freezing:
    """Return how a model can be frozen; refuse one that cannot.

    Tried once: a pass with every matrix frozen and no edit must give what the plain pass gives.
    """
    if not replay.restarts:
        raise ModelError("its passes cannot start at a layer")
    matrices = matrices_of(replay.blocks)
    with keeping(matrices) as kept:
        again = Replay(replay.loaded, replay.tensors, known=replay.known)
    with giving(gives(kept, 2)):
        frozen = again.split(again.forward([], 2, 0))
    bound = bound_of(replay.loaded.model.dtype)
    if not kept.once or not all(same(world, replay.plain, bound) for world in frozen):
        raise ModelError("with its matrices frozen it gives something else")
    row = {name: tensor[:1] for name, tensor in replay.tensors.items()}
    case = Case(replay.loaded, replay.known, freeze(row), row)
    projections = {layer: projection_of(case, layer).module for layer in replay.known.layers}
    return Freezing(tuple(matrices), projections)
