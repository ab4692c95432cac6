"""How is a model edited for a while, and then as it was, bit for bit?

    edits ─ heads found ─ reference runs ─ hooks at the door ─▶ the model runs as usual

Nothing of the model is changed: its weights are only read. Its attention passes through the door
while the block lasts, and no other thread runs or loads a model for us in that time.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from attention_atlas.edits.anatomy import DOORS, Anatomy, anatomy
from attention_atlas.edits.bind import bind
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.hooks import Stack
from attention_atlas.edits.inputs import Given, freeze_all, thaw
from attention_atlas.edits.table import read_edits
from attention_atlas.models.encode import encode
from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.errors import InputError
from attention_atlas.record.watch.door import Door, Hook
from attention_atlas.record.watch.registry import claimed
from attention_atlas.record.watch.setting import Setting
from attention_atlas.record.watch.tracer import Tracer

_stacks: dict[int, Stack] = {}  # of the innermost block, by id of the model; under EXCLUSIVE


@contextmanager
def edit(model: Any, edits: Any, tokenizer: Any = None, *, inputs: Any = None) -> Iterator[None]:
    """Run a model with edits inside the block; afterwards it is as before, bit for bit.

    model   a transformers model, or (model, tokenizer)
    inputs  what the model reads: by them its layers are found, and they are the reference inputs of
            edits that name none; unset: a few sample inputs, which are no reference

    Inside another block of the same model the edits of both are applied, those of the outer first.
    """
    if isinstance(model, str | Path):
        raise InputError(
            f"aa.edit was given the name {str(model)!r}; give the model that you run, or to store "
            "the attention of an edited model: aa.capture(…, edits=…)"
        )
    loaded = model if isinstance(model, Loaded) else load(model, tokenizer)
    asked = read_edits(edits)
    given = freeze_all(inputs)
    items = [encode(loaded, thaw(each)) for each in given[:2]]
    with EXCLUSIVE, editing(loaded, asked, anatomy(loaded, items), given):
        yield


@contextmanager
def editing(
    loaded: Loaded,
    edits: Sequence[Edit],
    known: Anatomy,
    corpus: Sequence[Given] = (),
    worlds: Sequence[range] | None = None,
) -> Iterator[Stack]:
    """Edit a model whose anatomy is known; yield the edits as they are applied.

    worlds  for each edit the rows of the batch that it may change; None: all
    """
    key = id(loaded.model)
    with EXCLUSIVE, ExitStack() as undo:
        outer = _stacks.get(key)
        if outer is not None:
            outer.paused = True
            undo.callback(setattr, outer, "paused", False)
        before = [] if outer is None else [each.edit for each in outer.bound]
        bound = bind(loaded, [*before, *edits], known, corpus)
        limits: list[range | None] = [None] * len(before)
        limits += worlds or [None] * len(edits)
        limited = [replace(each, world=limit) for each, limit in zip(bound, limits, strict=True)]
        stack = Stack(limited)
        _stacks[key] = stack
        undo.callback(_put_back, key, outer)
        undo.enter_context(opened(loaded.model, stack, known))
        yield stack


def _put_back(key: int, outer: Stack | None) -> None:
    if outer is None:
        del _stacks[key]
    else:
        _stacks[key] = outer


@contextmanager
def opened(model: Any, stack: Stack, known: Anatomy) -> Iterator[None]:
    """Let the attention of a model pass through the edits of a stack inside the block."""
    hooks: list[Hook] = [stack.first, stack.second]
    with ExitStack() as undo:
        undo.enter_context(claimed(model))
        if known.way in DOORS:
            door = Door(model, hooks, way=known.way, fast=known.fast, free=True)
            undo.enter_context(door.open())
        else:
            tracer = Tracer(model, batch=1, hooks=hooks, record=False)
            stack.on_batch = lambda batch: setattr(tracer, "batch", batch.size)
            undo.enter_context(Setting(model, "eager", free=True).held())
            undo.enter_context(tracer)
        undo.enter_context(stack.told(model))
        yield
