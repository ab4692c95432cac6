"""How is an edited model watched, so that what is recorded is what the edited model computed?"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from attention_atlas.edits.anatomy import DOORS
from attention_atlas.edits.hooks import Stack
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.door import Hook
from attention_atlas.record.watch.ways import Watch, watching


def watching_edited(model: Any, stack: Stack, way: str, **options: Any) -> Watch:
    """Prepare to watch a model with edits; return the function that runs it, batch by batch.

    options  those of `watching`
    """
    hooks: list[Hook] = [stack.first] if way in DOORS else []
    late: list[Hook] = [stack.second] if way in DOORS else [stack.first, stack.second]
    watch = watching(model, way, hooks=hooks, late=late, **options)

    def watched(tensors: dict[str, Tensor], run: Callable[..., Any] | None = None) -> list[Call]:
        with stack.told(model):
            return watch(tensors, run)

    return watched
