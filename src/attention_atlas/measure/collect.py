"""How does an atlas get all its scores in one pass?

Shard by shard, layer by layer, input by input; sums and bootstrap replicas are all that is kept, so
memory depends on the number of heads and time on the number of tokens pairs.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from attention_atlas.measure import boot
from attention_atlas.measure.kinds import SHORTEST, judge
from attention_atlas.measure.look import Floats, Look
from attention_atlas.measure.measure import Measure
from attention_atlas.measure.tally import Tally
from attention_atlas.measure.tokens import TokenTable, what_shows
from attention_atlas.names.errors import InputError
from attention_atlas.store.manifest import Layer, Tower
from attention_atlas.store.passes import Piece, pieces
from attention_atlas.store.reader import StoredAtlas

Done = Callable[[int], None]


@dataclass(frozen=True)
class Collected:
    """Scores and kinds of the heads of one layer."""

    tower: Tower
    layer: Layer
    measures: tuple[Measure, ...]
    scores: boot.Mean  # columns: measures × heads
    chances: Floats  # (measures, H)
    tally: Tally


def collect(
    atlas: StoredAtlas, measures: Mapping[str, Measure], seed: int = 0,
    done: Done = lambda count: None, only: set[int] | None = None,
) -> list[Collected]:  # fmt: skip
    """Every layer of an atlas, gone through once; `done` hears of inputs × layers.

    Of all inputs, or of those in `only`.
    """
    refuse_short(atlas)
    tokens = TokenTable(atlas)
    layers = [(tower, layer) for tower in atlas.towers for layer in tower.layers]
    gathered = [Gathering(atlas, tower, layer, measures.values(), seed) for tower, layer in layers]
    count = 0
    for number in range(len(atlas.manifest.shards)):
        for one in gathered:
            count += len(one.add_shard(number, tokens, only))
            done(count)
    return [one.collected() for one in gathered]


def refuse_short(atlas: StoredAtlas) -> None:
    """An atlas of one-token inputs has nothing to choose between."""
    longest = atlas.tokens().groupby(["input", "stream"]).size().max()
    if longest < 2:
        raise InputError(
            f"every input of {atlas.path.name} has a single token, so no head has anything to "
            "choose; capture inputs of two tokens or more"
        )


class Gathering:
    """One layer on its way."""

    def __init__(
        self, atlas: StoredAtlas, tower: Tower, layer: Layer, measures: Iterable[Measure], seed: int
    ):
        self.atlas, self.tower, self.layer, self.seed = atlas, tower, layer, seed
        self.square = layer.queries == layer.keys
        self.shows = what_shows(atlas, layer.keys)
        self.measures = tuple(one for one in measures if self._can(one))
        columns = len(self.measures) * layer.heads
        self.scores, self.tally = boot.Mean(columns), Tally(layer.heads)
        self._chance, self._chances = np.zeros(columns), np.zeros(columns)  # sums, counts

    def _can(self, measure: Measure) -> bool:
        if measure.needs in ("patches", "mixed"):
            return self.square and measure.needs in self.shows
        parts = {"weights": (), "vectors": ("query", "key"), "values": ("value",)}[measure.needs]
        there = all(self.atlas.has(part, self.layer.layer, self.tower.name) for part in parts)
        return there and (self.square or not measure.square)

    def add_shard(
        self, number: int, tokens: TokenTable, only: set[int] | None = None
    ) -> dict[int, Floats]:
        """Input → (measures, H) of the inputs of one shard."""
        inputs: dict[int, Floats] = {}
        for piece in pieces(self.atlas, number, self.tower, self.layer, only):
            look = self._look(piece, tokens)
            dice = np.random.default_rng([self.seed, piece.input, self.layer.layer])
            shape = len(self.measures), self.layer.heads
            values = inputs.setdefault(piece.input, np.full(shape, np.nan))
            values[:, piece.heads.start : piece.heads.stop] = values_of(self.measures, look)
            self._add_chance(chance_of(self.measures, look, dice), piece.heads)
            if min(look.seen.shape) >= SHORTEST:
                self.tally.add(
                    judge(look.weights, look.seen, look.special), piece.heads, piece.input
                )
        if inputs:
            draws = boot.draws(self.seed, list(inputs))
            flat = np.stack([values.reshape(-1) for values in inputs.values()])
            self.scores.add(flat, draws)
        return inputs

    def _look(self, piece: Piece, tokens: TokenTable) -> Look:
        ids, special, punctuation = tokens.of(piece.input, self.layer.keys)
        group = self.layer.heads // self.layer.groups

        def spread(shared: Floats | None) -> Floats | None:
            """(H, …) from (G, …): heads of a group read the same."""
            return None if shared is None else np.repeat(shared, group, axis=0)

        return Look(
            piece.weights, piece.seen, ids, special, punctuation, self.square, piece.query,
            spread(piece.key), spread(piece.value),
            tokens.places(piece.input, self.layer.keys) if self.shows else None,
        )  # fmt: skip

    def _add_chance(self, chance: Floats, heads: range) -> None:
        sums, counts = (one.reshape(-1, self.layer.heads) for one in (self._chance, self._chances))
        there = np.isfinite(chance)
        sums[:, heads.start : heads.stop] += np.where(there, chance, 0)
        counts[:, heads.start : heads.stop] += there

    def collected(self) -> Collected:
        chance = np.where(self._chances > 0, self._chance / np.maximum(self._chances, 1), np.nan)
        shaped = chance.reshape(len(self.measures), self.layer.heads)
        return Collected(
            self.tower, self.layer, self.measures, self.scores, shaped, self.tally
        )  # fmt: skip


def values_of(measures: Iterable[Measure], look: Look) -> Floats:
    """(measures, H)"""
    return np.stack([measure.of(look) for measure in measures])


def chance_of(measures: Iterable[Measure], look: Look, dice: np.random.Generator) -> Floats:
    """(measures, H): what each measure would give by chance."""
    shuffled, even, heads = look.shuffled(dice), look.even(), len(look.weights)
    given: dict[str, Callable[[Measure], Floats]] = {
        "shuffled": lambda measure: measure.of(shuffled),
        "even": lambda measure: np.repeat(measure.of(even), heads),
        "zero": lambda measure: np.zeros(heads),
    }
    return np.stack([given[measure.chance](measure) for measure in measures])
