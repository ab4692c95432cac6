"""Model + inputs → an atlas with everything in it, in one call.

Each step finds what is already there and goes on after it, so a build that was stopped is gone on
with by asking again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention_atlas.names.errors import InputError
from attention_atlas.record.write.capture import capture
from attention_atlas.store.reader import Atlas


@dataclass(frozen=True)
class Wanted:
    """What an atlas is to have besides its vectors."""

    methods: Sequence[str] = ("umap",)
    dims: Sequence[int] = (2,)
    tokens: int = 5000
    seed: int = 0
    device: str = "auto"


def build(
    model: Any, inputs: Any, path: str | Path, wanted: Wanted | None = None,
    progress: bool = True, **options: Any,
) -> Atlas:  # fmt: skip
    """The atlas in `path`; `options` are those of `capture`."""
    asked = wanted or Wanted()
    _check(asked)
    atlas = capture(
        model, inputs, path=path, seed=asked.seed, device=asked.device, progress=progress, **options
    )
    for step in STEPS:
        step(atlas, asked, progress)
    return atlas


def lay_out(atlas: Atlas, asked: Wanted, progress: bool) -> None:
    for method in asked.methods:
        for dims in asked.dims:
            atlas.layout(
                method, dims, tokens=asked.tokens, seed=asked.seed, device=asked.device,
                progress=progress,
            )  # fmt: skip


def measure(atlas: Atlas, asked: Wanted, progress: bool) -> None:
    atlas.measure(seed=asked.seed, progress=progress)


STEPS: tuple[Callable[[Atlas, Wanted, bool], None], ...] = (lay_out, measure)


def _check(asked: Wanted) -> None:
    """Before hours of capturing, not after."""
    from attention_atlas.layout.methods import find_method

    if not asked.methods or not asked.dims:
        raise InputError("name at least one method and one number of dimensions, as in umap and 2")
    for method in asked.methods:
        for dims in asked.dims:
            find_method(method, dims)
