"""What do edits change in one input? Its attention, predictions and the text that follows."""

import math
import time
from collections.abc import Sequence

import numpy as np
from cachetools import LRUCache

from attention_atlas.edits.anatomy import ModelLayer
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.hooks import Bound
from attention_atlas.lab.change import changes
from attention_atlas.lab.predict import NOT_FINITE, Guesses, Predictor, logits_of
from attention_atlas.lab.recorded_worlds import World, Worlds, needs_weights
from attention_atlas.lab.sentences import Sides, describe
from attention_atlas.lab.stored_input import encode_stored
from attention_atlas.models.limits import longest
from attention_atlas.models.load import Loaded
from attention_atlas.names.errors import ModelError, PickError
from attention_atlas.names.token_text import shown
from attention_atlas.page.answers.edited import EditedAtlas
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.live.model import ALIKE
from attention_atlas.page.live.read_edits import EditReader, ReadEdit
from attention_atlas.page.wire import lab as wire

_BOUND = 64  # edits whose reference inputs need not run again


class LabInput:
    """One input of an atlas and the model that reads it, with the plain run."""

    def __init__(self, atlas: Grown, number: int, loaded: Loaded):
        item = encode_stored(atlas, number, loaded)
        self.atlas, self.number, self.loaded = atlas, number, loaded
        self.worlds = Worlds(loaded, item, atlas.towers)
        self.predictor = Predictor(loaded, item)
        self._bound: LRUCache[Edit, Bound] = LRUCache(_BOUND)
        self._plain: dict[bool, tuple[int, EditedAtlas]] = {}
        self._written: dict[int, str] = {}
        self._tokens = {
            str(stream): shown(part["text"].tolist(), part["special"].tolist())
            for stream, part in atlas.tokens(number).groupby("stream")
        }
        self._reader = EditReader(atlas, number, loaded, max(map(len, self._tokens.values())))
        self._refuse_another()

    def _refuse_another(self) -> None:
        """Refuse a model whose attention is not that of the atlas."""
        _, plain = self._shown(False)
        for tower in self.atlas.towers:
            last = tower.layers[-1].layer
            rows = [-1]  # the last token has passed through everything
            stored = self.atlas.rows(self.number, last, tower.name, None, rows)
            read = plain.rows(0, last, tower.name, None, rows)
            off = float(np.abs(read - stored).max()) if read.shape == stored.shape else np.inf
            if not off <= ALIKE:
                raise ModelError(
                    f"{self.loaded.name} is not the model of this atlas: layer {last} of "
                    f"{tower.name} is off by {off:.2g} on input {self.number}; give the model that "
                    "was captured"
                )

    def edit(self, asked: wire.EditInput) -> wire.EditedInput:
        """Run the input with edits; return what changes, and the number of the edited input."""
        began = time.monotonic()
        notes: list[str] = []
        bound, done = self._bind(asked, notes)
        by_weights = needs_weights(bound)
        before = self.worlds.plain(by_weights)
        after = self.worlds.edited(bound) if bound else before
        predictions = self._predictions(before, after, asked.at, notes)
        text = self._text(bound, asked.generate, notes)
        plain, plain_atlas = self._shown(by_weights)
        atlas = EditedAtlas(self.atlas, self.number, after.attention) if bound else plain_atlas
        same = [
            name for name, layer in after.attention.items() if layer is before.attention.get(name)
        ]
        moved = _finite(changes(plain_atlas, atlas, same))
        number = self.atlas.edited.add(atlas) if bound else plain
        return wire.EditedInput(
            number, plain, round(time.monotonic() - began, 3), notes, done,
            self.predictor.kind if predictions else "", predictions, text,
            [wire.HeadChange(head, change) for head, change in moved.items()],
        )  # fmt: skip

    def _bind(
        self, asked: wire.EditInput, notes: list[str]
    ) -> tuple[list[Bound], list[wire.EditDone]]:
        """Return the edits with their heads, and what each does."""
        bound, done = [], []
        for place, raw in enumerate(asked.edits, 1):
            read = self._reader.read(raw)
            if read is None:
                notes.append(f"edit {place} is not for this input")
                done.append(wire.EditDone("nothing: this edit is for other inputs", []))
                continue
            bound.append(self._bind_one(read))
            sides = self._sides(next(iter(bound[-1].heads)))
            said = describe(bound[-1], self.worlds.known.towers, sides, read.source)
            done.append(wire.EditDone(said.sentence, said.touches))
        return bound, done

    def _bind_one(self, read: ReadEdit) -> Bound:
        if read.edit not in self._bound:
            (self._bound[read.edit],) = self.worlds.bind([read.edit])
        return self._bound[read.edit]

    def _sides(self, layer: ModelLayer) -> Sides:
        """Return the tokens of a layer; none if the layer is not in the atlas."""
        towers = [tower for tower in self.atlas.towers if tower.name == layer.tower]
        stored = towers[0].find(layer.number) if towers else None
        if stored is None:
            return Sides((), ())
        return Sides(self._tokens[stored.queries], self._tokens[stored.keys])

    def _predictions(
        self, before: World, after: World, at: int | None, notes: list[str]
    ) -> list[wire.Prediction]:
        first, second = logits_of(before.outputs), logits_of(after.outputs)
        if first is None or second is None or not self.predictor.kind:
            notes.append(
                f"{type(self.loaded.model).__name__} has no head, so it predicts nothing; capture "
                "and serve the model with its head to see predictions"
            )
            return []
        if self.predictor.kind == "masked" and at is None and not self.predictor.masked:
            notes.append(
                "this text has no masked token, so the prediction is of a token that the model sees"
            )
        return [_prediction(guess) for guess in self.predictor.guesses(first, second, at)]

    def _text(self, bound: list[Bound], new: int, notes: list[str]) -> wire.GeneratedText | None:
        """Return the text that the model writes without and with edits, if it is asked for."""
        if not new:
            return None
        tokenizer, model = self.loaded.tokenizer, self.loaded.model
        if not model.can_generate() or tokenizer is None:
            notes.append(f"{type(model).__name__} does not write text")
            return None
        limit = longest(self.loaded)
        room = new if limit is None else min(new, limit - self.worlds.length - 1)
        if room < 1:
            notes.append(f"the input is as long as the model can read ({limit} tokens)")
            return None

        def written(edits: Sequence[Bound]) -> str:
            return str(tokenizer.decode(self.worlds.write(edits, room), skip_special_tokens=True))

        if new not in self._written:
            self._written[new] = written(())
        before = self._written[new]
        after = written(bound) if bound else before
        return wire.GeneratedText(before, after, _same(before, after))

    def _shown(self, by_weights: bool) -> tuple[int, EditedAtlas]:
        """Return the plain run as an input that can be read, and its number."""
        if by_weights in self._plain:
            try:
                self.atlas.edited.get(self._plain[by_weights][0])
                return self._plain[by_weights]
            except PickError:  # too many others were kept since
                del self._plain[by_weights]
        atlas = EditedAtlas(self.atlas, self.number, self.worlds.plain(by_weights).attention)
        self._plain[by_weights] = self.atlas.edited.add(atlas), atlas
        return self._plain[by_weights]


def _finite(moved: dict[str, float]) -> dict[str, float]:
    if not all(map(math.isfinite, moved.values())):
        raise ModelError(NOT_FINITE)
    return moved


def _same(first: str, second: str) -> int:
    """Count the characters with which two texts begin alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(first), len(second)))


def _prediction(guesses: Guesses) -> wire.Prediction:
    tokens = [
        wire.PredictedToken(guess.text, guess.id, guess.before, guess.after)
        for guess in guesses.tokens
    ]
    return wire.Prediction(guesses.position, guesses.label, tokens)
