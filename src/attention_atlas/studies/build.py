"""How does one call make an atlas with maps and scores from a model and inputs?

Each step skips what is already done, so a second call resumes an interrupted build.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention_atlas.engine.engines import find_engine
from attention_atlas.engine.job import Engine
from attention_atlas.layout.device import chosen_device
from attention_atlas.layout.methods import find_method
from attention_atlas.layout.plan import Options
from attention_atlas.layout.run import layout_atlas
from attention_atlas.names.errors import InputError
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.studies.capture import capture
from attention_atlas.studies.measure import measure as measure_all


@dataclass(frozen=True)
class Wanted:
    """The maps and scores to make besides the capture."""

    methods: Sequence[str] = ("umap",)
    dims: Sequence[int] = (2,)
    tokens: int = 5000
    seed: int = 0
    device: str = "auto"
    engine: str | Engine = "local"


def build(
    model: Any, inputs: Any, path: str | Path, wanted: Wanted | None = None,
    progress: bool = True, **options: Any,
) -> StoredAtlas:  # fmt: skip
    """Capture, lay out and measure into `path`; returns the atlas. `options` go to `capture`."""
    asked = wanted or Wanted()
    _check(asked)
    atlas = capture(
        model, inputs, path=path, seed=asked.seed, device=asked.device, progress=progress,
        engine=asked.engine, **options,
    )  # fmt: skip
    for step in STEPS:
        step(atlas, asked, progress)
    return atlas


def lay_out(atlas: StoredAtlas, asked: Wanted, progress: bool) -> None:
    """Make every map that was asked for, unless the atlas has no vectors."""
    if atlas.manifest.kept_inputs == frozenset():
        print("no maps: the atlas keeps no vectors (vectors='none')", file=sys.stderr)
        return
    for method in asked.methods:
        for dims in asked.dims:
            options = Options(
                method, dims, tokens=asked.tokens, seed=asked.seed,
                device=chosen_device(asked.device),
            )  # fmt: skip
            layout_atlas(atlas, options, progress, find_engine(asked.engine))


def measure(atlas: StoredAtlas, asked: Wanted, progress: bool) -> None:
    """Measure every head."""
    measure_all(atlas, seed=asked.seed, progress=progress, engine=asked.engine)


STEPS: tuple[Callable[[StoredAtlas, Wanted, bool], None], ...] = (lay_out, measure)


def _check(asked: Wanted) -> None:
    """Refuse methods that do not exist, before hours of capturing."""
    if not asked.methods or not asked.dims:
        raise InputError("name at least one method and one number of dimensions, as in umap and 2")
    for method in asked.methods:
        for dims in asked.dims:
            find_method(method, dims)
