"""What can a person do with an atlas? Read it, lay it out, measure and label it.

Reading is in `StoredAtlas`; the methods here import the code that they call when first needed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from attention_atlas.engine.job import Engine
from attention_atlas.names.arguments import checked_methods
from attention_atlas.store.maps import Map
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.scores import Scores
from attention_atlas.store.token_sets import Side, Together, attention_of

if TYPE_CHECKING:
    from attention_atlas.measure.directions import Directions, Way

_OPTIONS = {
    "measure": ("studies.measure:measure", "models.loading:Loading"),
    "label": ("studies.measure:label", "models.loading:Loading"),
}


@checked_methods(_OPTIONS)
class Atlas(StoredAtlas):
    """One model over some inputs, stored in a folder. `aa.open` and `aa.capture` return one."""

    _kept: StoredAtlas | None = None  # keeps a temporary folder until this object is deleted

    @property
    def edits(self) -> tuple[dict[str, Any], ...]:
        """Get the edits with which this atlas was captured, as JSON; () if there were none."""
        return tuple(self.manifest.options.get("edits", ()))

    @classmethod
    def of(cls, stored: StoredAtlas) -> Self:
        """Make an atlas of one that can only be read."""
        atlas = cls(stored.path, stored.manifest)
        atlas._kept = stored
        return atlas

    def layout(
        self,
        method: str = "umap",
        dims: int = 2,
        *,
        joint: str = "attention",
        tokens: int = 5000,
        sampling: str = "inputs",
        seed: int = 0,
        device: str = "auto",
        progress: bool = True,
        engine: str | Engine = "local",
    ) -> Map:
        """Lay out all queries and keys of every head, if not done yet; returns map and fidelity."""
        from attention_atlas.engine.engines import find_engine
        from attention_atlas.layout.device import chosen_device
        from attention_atlas.layout.plan import Options
        from attention_atlas.layout.run import layout_atlas

        options = Options(method, dims, joint, tokens, sampling, seed, chosen_device(device))
        return layout_atlas(self, options, progress, find_engine(engine))

    def place_all(
        self,
        method: str = "umap",
        dims: int = 2,
        *,
        heads: Sequence[str] | None = None,
        device: str = "auto",
        progress: bool = True,
    ) -> list[str]:
        """Place all tokens of some heads, or of all, on a map that has a sample of them.

        Returns a sentence for each head that cannot be placed; it keeps to its sample.
        """
        from attention_atlas.layout.device import chosen_device
        from attention_atlas.layout.rest import place_rest
        from attention_atlas.store.maps import read_map

        path = self.path / "layouts" / f"{method}-{dims}d.safetensors"
        return place_rest(self, read_map(path), heads, chosen_device(device), progress)

    def measure(self, model: Any = None, tokenizer: Any = None, **options: Any) -> Scores:
        """Score every head and name its kind, if not done yet; returns the scores.

        model    adds scores on repeated random tokens, and gradient importance
        conllu   (an option) adds agreement with the trees of a CoNLL-U file
        without_sinks  (an option) measures weights without the sinks of each input as well, and
                 returns those scores

        The other options are those of `studies.measure.measure`.
        """
        from attention_atlas.studies.measure import measure

        return measure(self, model, tokenizer, **options)

    def attention_of(
        self, tokens: Sequence[int], input: int = 0, head: str = "L0H0",
        side: Side = "query", how: Together = "mean",
    ) -> npt.NDArray[np.float32]:  # fmt: skip
        """Return what a set of tokens looks at (M,), or with side="key" what looks at it (N,).

        how  "mean" over the tokens, or their "sum"
        """
        return attention_of(self, tokens, input, head, side, how)

    def directions(
        self, head: str, k: int | None = None, way: "Way" = "contrast", seed: int = 0
    ) -> "Directions":
        """Find the few directions along which a head's queries and keys meet.

        k    how many; unset, the fewest of 3 to 8 that keep 90 % of the attention
        way  "contrast": what tells keys that are looked at from all keys; "svd": what gives q·k
        """
        from attention_atlas.measure.directions import directions

        return directions(self, head, k, way, seed)

    def scores(self, without_sinks: bool = False) -> Scores | None:
        """Get the scores in the folder, or those measured in memory; None if not measured."""
        from attention_atlas.measure.run import known_scores

        return known_scores(self, without_sinks)

    def label(self, model: Any, processor: Any = None, **options: Any) -> pd.DataFrame:
        """Name what each patch shows by a segmentation model of transformers; returns the tokens.

        The options are those of `studies.measure.label`.
        """
        from attention_atlas.studies.measure import label

        label(self, model, processor, **options)
        self.__dict__.pop("_tokens", None)  # read again, with the labels
        return self.tokens()


def open_atlas(folder: str | Path) -> Atlas:
    """Open the atlas in a folder; refuses one that is unfinished, damaged or newer."""
    return Atlas.open(folder)


def capture(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    path: str | Path | None = None,
    keep: tuple[str, ...] = ("query", "key", "value"),
    batch_size: int = 8,
    device: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    progress: bool = True,
    engine: str | Engine = "local",
    **options: Any,
) -> Atlas:
    """Run a model over inputs and store its attention; returns the atlas.

    Without `path` the atlas is in a temporary folder, deleted with the object. Resumes an
    interrupted capture; opens a folder that already holds this capture.

    edits      (an option) changes of the forward pass: aa.ablate, aa.mask, …
    generate   (an option) let the model write that many tokens after each input, captured too
    truncate   (an option) cut inputs that are too long for the model instead of refusing them
    vectors    (an option) whose vectors to keep: "all", "sample:20000" (whole inputs drawn until
               they have so many tokens) or "none"; scores are then measured while capturing

    The other options are those of `record.write.capture.capture`.
    """
    from attention_atlas.studies.capture import capture as run

    stored = run(
        model, inputs, tokenizer, path, keep, batch_size, device, limit, seed, progress, engine,
        **options,
    )  # fmt: skip
    return Atlas.of(stored)
