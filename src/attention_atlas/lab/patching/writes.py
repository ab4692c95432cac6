"""What do the blocks of a model add to its stream, besides attention?

A block gives what it is given, plus what its attention gives, plus what one more module gives: the
feed-forward layer. Which module that is, is found by running: the one whose output is the rest.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.lab.worlds import Scene
from attention_atlas.names.errors import ModelError
from attention_atlas.record.prove.layer_errors import bound_of
from attention_atlas.record.watch.call import first_tensor


def feed_forward_modules(scene: Scene) -> list[nn.Module]:
    """Return the module of each block that adds to the stream besides attention.

    A model whose blocks are no such sums (a norm after the sum, shared blocks) is a ModelError.
    """
    model = scene.loaded.model
    blocks: dict[str, list[ModelLayer]] = {}
    for layer in scene.known.layers:
        blocks.setdefault(_block_of(model, layer.module), []).append(layer)
    with _watched(model, list(blocks)) as (given, gave):
        scene.run([], 1)
    found = [_rest(model, path, layers, given, gave) for path, layers in blocks.items()]
    missing = [path for path, module in zip(blocks, found, strict=True) if module is None]
    if missing:
        raise ModelError(
            f"{missing[0] or 'a block'} of {type(model).__name__} does not add what its attention "
            "and one other module give to what it is given, so single paths cannot be told apart"
        )
    return [module for module in found if module is not None]


def _block_of(model: nn.Module, path: str) -> str:
    """Return the path of the outermost member of a list of layers that a module is in, or ""."""
    parts = path.split(".")
    for end in range(1, len(parts)):
        if isinstance(model.get_submodule(".".join(parts[:end])), nn.ModuleList):
            return ".".join(parts[: end + 1])
    return ""


Kept = dict[str, list[Tensor]]  # by path, one for each time that it ran


@contextmanager
def _watched(model: nn.Module, blocks: Sequence[str]) -> Iterator[tuple[Kept, Kept]]:
    """Keep what blocks are given, and what they and their modules give, by path."""
    given: Kept = {}
    gave: Kept = {}
    with ExitStack() as undo:
        for path in filter(None, blocks):
            block = model.get_submodule(path)
            enter = block.register_forward_pre_hook(_keep_given(given, path), with_kwargs=True)
            undo.callback(enter.remove)
            for name, module in block.named_modules():
                full = f"{path}.{name}" if name else path
                undo.callback(module.register_forward_hook(_keep_gave(gave, full)).remove)
        yield given, gave


def _keep_given(kept: Kept, path: str) -> Any:
    def keep(_module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        values = (*args, *named.values())
        stream = next((x for x in values if isinstance(x, Tensor) and x.dim() == 3), None)
        if stream is not None:
            kept.setdefault(path, []).append(stream.detach())

    return keep


def _keep_gave(kept: Kept, path: str) -> Any:
    def keep(_module: nn.Module, _args: Any, output: Any) -> None:
        tensor = first_tensor(output)
        if tensor is not None:
            kept.setdefault(path, []).append(tensor.detach())

    return keep


def _rest(
    model: nn.Module, path: str, layers: Sequence[ModelLayer], given: Kept, gave: Kept
) -> nn.Module | None:
    """Return the module of a block that gives what the block adds besides its attention."""
    streams, outputs = given.get(path, []), gave.get(path, [])
    added = [gave.get(layer.module, []) for layer in layers]
    if not (len(streams) == len(outputs) == 1) or any(len(each) != 1 for each in added):
        return None
    if any(each[0].shape != outputs[0].shape for each in added):
        return None
    rest = outputs[0] - streams[0] - sum(each[0] for each in added)
    bound = bound_of(outputs[0].dtype) * float(outputs[0].abs().max())
    inside: Iterator[tuple[str, nn.Module]] = model.get_submodule(path).named_modules()
    for name, module in inside:
        several = gave.get(f"{path}.{name}", [])
        whole = len(several) == 1 and several[0].shape == rest.shape
        if name and whole and float((several[0] - rest).abs().max()) <= bound:
            return module
    return None


@contextmanager
def held(modules: Sequence[nn.Module], rows: range) -> Iterator[None]:
    """Let modules give in some rows of a batch what they give in row 0, inside the block."""

    def hold(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
        new = output.clone()
        new[rows.start : rows.stop] = output[:1]
        return new

    with ExitStack() as undo:
        for module in modules:
            undo.callback(module.register_forward_hook(hold).remove)
        yield
