"""How does the model of an open atlas read new texts?

It must be the model that the atlas was captured from. We check that: it reads an input of the atlas
again, and the attention must equal the stored one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_atlas.models.exclusive import EXCLUSIVE
from attention_atlas.models.threads import beside_others, torch_threads
from attention_atlas.names.errors import AtlasError, InputError, ModelError
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.wire.constants import LONGEST_TEXT
from attention_atlas.page.wire.lab import Predicts
from attention_atlas.store.reader import StoredAtlas

if TYPE_CHECKING:
    from attention_atlas.models.load import Loaded

TEXTS = ("text", "pair")  # kinds of input that can be added
ALIKE = 5e-3  # stored weights are within 1e-3 of the model's; another device adds a little


class LiveModel:
    """A model, given by name or as an object, that is loaded on first use."""

    def __init__(self, model: Any, tokenizer: Any = None, **options: Any):
        self._given, self._options = (model, tokenizer), options
        self.name = model if isinstance(model, str) else type(model).__name__
        self._reading = RLock()  # several atlases may share it, and a tokenizer is not thread-safe

    @cached_property
    def _loaded(self) -> "Loaded":
        with EXCLUSIVE:  # two threads must not import transformers at once
            from attention_atlas.models.load import load

        return load(*self._given, **self._options)

    @contextmanager
    def held(self) -> "Iterator[Loaded]":
        """Give the model, loaded, to one thread at a time; torch leaves a core to the others."""
        with self._reading:
            loaded = self._loaded
            with torch_threads(beside_others()):
                yield loaded

    @property
    def predicts(self) -> Predicts:
        """Get what the model predicts; empty if it is not loaded yet."""
        if "_loaded" not in self.__dict__:
            return ""
        from attention_atlas.lab.predict import predicts

        return predicts(self._loaded.model)

    def read(self, like: StoredAtlas, text: str, second: str | None = None) -> StoredAtlas:
        """Capture one text with the options of atlas `like`; return the new atlas."""
        with EXCLUSIVE:  # two threads must not import transformers at once
            from attention_atlas.record.write.capture import capture

        for part in (text, second or ""):
            if len(part) > LONGEST_TEXT:
                raise InputError(
                    f"a text of {len(part)} characters is too long; give at most {LONGEST_TEXT}"
                )
        if not text.strip():
            raise InputError("there is no text to add; write some")
        given = {"text": text} if second is None else {"text": text, "second": second}
        options = like.manifest.options
        with self.held() as loaded:
            return capture(
                (loaded.model, loaded.processor), [given], keep=like.manifest.keep, progress=False,
                truncate=bool(options.get("truncate")), generate=int(options.get("generate", 0)),
            )  # fmt: skip

    def check(self, atlas: StoredAtlas) -> None:
        """Refuse a model that the atlas was not captured from."""
        inputs = atlas.inputs()
        texts = inputs[inputs["kind"].isin(TEXTS)]
        if texts.empty:
            self._check_stored(atlas)
            return
        row = texts.iloc[texts["text"].str.len().argmin()]
        second = row["second"] if isinstance(row["second"], str) else None
        again, number = self.read(atlas, row["text"], second), int(row["input"])
        for tower in atlas.towers:
            match = next((new for new in again.towers if new.name == tower.name), None)
            for layer in tower.layers:
                same = match is not None and match.find(layer.layer) is not None
                shape = atlas.shape(number, layer.layer, tower.name)
                if not same or again.shape(0, layer.layer, tower.name) != shape:
                    raise ModelError(f"{self.name} is not the model of this atlas: {_OTHER}")
                rows = np.unique(np.linspace(0, shape[1] - 1, _ROWS).astype(int)).tolist()
                stored = atlas.rows(number, layer.layer, tower.name, None, rows)
                new = again.rows(0, layer.layer, tower.name, None, rows)
                off = float(np.abs(new - stored).max(initial=0))
                if off > ALIKE:
                    raise ModelError(
                        f"{self.name} is not the model of this atlas: on its own input {number}, "
                        f"layer {layer.layer} of {tower.name} is off by {off:.2g}"
                    )

    def _check_stored(self, atlas: StoredAtlas) -> None:
        """Refuse another model, by an input that is no text and is read again as it is stored."""
        with EXCLUSIVE:
            from attention_atlas.page.live.lab_input import LabInput

        with self.held() as loaded:
            LabInput(Grown(atlas), 0, loaded)


_ROWS = 64  # of an input that are compared; a long one has too many
_OTHER = "its layers, heads or tokens differ"


def give_out(models: Sequence[LiveModel], atlases: Sequence[StoredAtlas]) -> list[LiveModel | None]:
    """Return the model of each atlas, or None; refuse a model that fits no atlas."""
    given: list[LiveModel | None] = [None] * len(atlases)
    for model in models:
        first: AtlasError | None = None
        for number, atlas in enumerate(atlases):
            try:
                model.check(atlas)
                given[number] = model
            except AtlasError as problem:
                first = first or problem
        if model not in given and first is not None:
            raise first
    return given
