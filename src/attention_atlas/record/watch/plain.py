"""What does a model do when it is run plainly? Watched runs are compared with these runs."""

from dataclasses import dataclass

from torch import Tensor
from transformers import PreTrainedModel

from attention_atlas.names.errors import AtlasError
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.module_outputs import module_outputs
from attention_atlas.record.watch.returned import output_calls, without_new_hooks
from attention_atlas.record.watch.setting import Setting
from attention_atlas.record.watch.tracer import Tracer
from attention_atlas.record.watch.ways import observe


@dataclass
class Plain:
    """One plain run with eager attention, and what three witnesses recorded of it."""

    outputs: dict[str, list[Tensor]]  # by module
    traced: list[Call]
    returned: list[Call]  # the maps of `output_attentions`


def plain_run(
    model: PreTrainedModel, tensors: dict[str, Tensor], modules: set[str], seed: int = 0
) -> Plain:
    """Run the model with all witnesses in one pass if that works, else one by one.

    Tracer and maps are only witnesses, so it is no error if a model does not work with them.
    """
    tracer = Tracer(model, batch=len(next(iter(tensors.values()))))
    eager = Setting(model, "eager", seed)
    try:
        with (
            eager.held(),
            without_new_hooks(model),
            module_outputs(model, modules) as outputs,
            tracer,
        ):
            returned = output_calls(model(**tensors, output_attentions=True))
        return Plain(outputs, tracer.take(), returned)
    except AtlasError:
        raise
    except Exception:
        outputs = plain_outputs(model, tensors, modules, seed, name="eager")
        try:
            return Plain(outputs, observe(model, tensors, "trace", seed=seed), [])
        except AtlasError:
            raise
        except Exception:
            return Plain(outputs, [], [])


def plain_outputs(
    model: PreTrainedModel, tensors: dict[str, Tensor], modules: set[str], seed: int, name: str
) -> dict[str, list[Tensor]]:
    """Run the model with the attention called `name`; return the outputs of each of `modules`."""
    with Setting(model, name, seed).held(), module_outputs(model, modules) as outputs:
        model(**tensors)
    return outputs
