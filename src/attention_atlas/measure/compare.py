"""How do models differ on the same inputs?

On the inputs that all of them read: statistics of importance (the study's Table 1, with and without
rows that see one key), the number of heads of each kind, and the distance of each head from every
other, within a model and across models. Where tokenizers differ, weights are aligned by characters
first, and the note says so.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from attention_atlas.measure.align import aligned, cuts, looking, onto
from attention_atlas.measure.alike import LONGEST, ROWS, gather, mean_divergence
from attention_atlas.measure.arrays import Floats
from attention_atlas.measure.importance import statistics
from attention_atlas.measure.kinds import KINDS
from attention_atlas.measure.over_time import AWAY, HeadLines, head_lines
from attention_atlas.measure.run import measure_atlas, measure_some
from attention_atlas.names.errors import InputError
from attention_atlas.store.form import Ints
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.scores import Scores

_NO_SINKS = (
    "; scores and kinds are without the sinks of each input, distances between heads with them"
)
INPUTS = 16  # shared inputs on which heads are compared


@dataclass(frozen=True)
class ModelComparison:
    """How models differ on the inputs that all of them read."""

    names: tuple[str, ...]
    statistics: pd.DataFrame  # Table 1, a column a model
    statistics_chosen: pd.DataFrame  # the same without rows that see one key
    kinds: pd.DataFrame  # heads of each kind, a column a model
    scores: tuple[Scores, ...]  # of the shared inputs alone
    inputs: tuple[tuple[int, ...], ...]  # each shared input's number in every atlas
    heads: tuple[tuple[str, ...], ...]  # those compared, of each model
    divergence: Floats  # (all heads, all heads), one model after the other, bits
    aligned: bool  # by characters, because the tokenizers differ
    note: str

    @property
    def shared(self) -> int:
        """The number of inputs that all atlases have."""
        return len(self.inputs)

    def between(self, one: int, other: int) -> Floats:
        """Get the distances of two models' heads; returns (heads of one, of the other), bits."""
        edges = np.cumsum([0, *map(len, self.heads)])
        rows, columns = (slice(edges[model], edges[model + 1]) for model in (one, other))
        return np.asarray(self.divergence[rows, columns])

    def nearest(self, head: str, model: int = 1) -> tuple[str, float]:
        """Find the nearest head in another model to one of the first; returns it and the bits."""
        row = self.between(0, model)[self.heads[0].index(head)]
        return self.heads[model][int(row.argmin())], float(row.min())

    def apart(self, model: int = 1) -> list[tuple[str, str, float]]:
        """List the heads of the first model with their nearest in another, least alike first."""
        pairs = [(head, *self.nearest(head, model)) for head in self.heads[0]]
        return sorted(pairs, key=lambda pair: -pair[2])

    def away(self) -> dict[str, Floats]:
        """Get how far each head is from itself in the first model, in every model: (models,)."""
        if any(heads != self.heads[0] for heads in self.heads):
            return {}
        every = np.array([np.diagonal(self.between(0, model)) for model in range(len(self.names))])
        return dict(zip(self.heads[0], every.T, strict=True))

    def lines(self, measure: str = AWAY) -> HeadLines:
        """Get a score of every head over the models; they must be checkpoints of one model.

        "away" is how far a head is from itself in the first model. A notebook draws it.
        """
        return head_lines(self.scores, self.names, self.away(), measure)

    def changed(self, model: int = 1) -> list[tuple[str, float]] | None:
        """List how far heads of one name are apart, farthest first; None where the names differ."""
        if self.heads[0] != self.heads[model]:
            return None
        away = np.diagonal(self.between(0, model))
        return sorted(zip(self.heads[0], map(float, away), strict=True), key=lambda pair: -pair[1])


def compare(
    first: StoredAtlas, second: StoredAtlas, *others: StoredAtlas, seed: int = 0, keep: bool = True,
    without_sinks: bool = False,
) -> ModelComparison:  # fmt: skip
    """Compare atlases of the same texts; measures those that are not measured yet.

    without_sinks  scores and kinds without the sinks of each input; distances are of all weights
    """
    atlases = (first, second, *others)
    shared = shared_inputs(*atlases)
    measured = tuple(
        _measured(atlas, {numbers[side] for numbers in shared}, keep, without_sinks)
        for side, atlas in enumerate(atlases)
    )
    names = _names(atlases)
    same = all(_same_tokens(atlases, numbers) for numbers in shared[:INPUTS])
    heads, divergence = _divergence(atlases, shared[:INPUTS], same, seed)
    return ModelComparison(
        names, _statistics(measured, names, "importance"),
        _statistics(measured, names, "importance-chosen"), _kinds(measured, names), measured,
        tuple(shared), heads, divergence, not same,
        _note(atlases, len(shared), same) + (_NO_SINKS if without_sinks else ""),
    )  # fmt: skip


def shared_inputs(*atlases: StoredAtlas) -> list[tuple[int, ...]]:
    """Find the inputs with the same text in all atlases; returns their numbers in each."""
    tables = [{text: number for number, text in enumerate(_texts(atlas))} for atlas in atlases]
    shared = [
        tuple(numbers[text] for numbers in tables)
        for text in tables[0]
        if all(text in numbers for numbers in tables)
    ]
    if not shared:
        raise InputError(
            f"{' and '.join(atlas.path.name for atlas in atlases)} have no input in common; "
            "capture all models on the same texts"
        )
    return shared


def _texts(atlas: StoredAtlas) -> list[tuple[str, str]]:
    frame = atlas.inputs()
    if not frame["kind"].isin(["text", "pair"]).all():
        raise InputError(f"{atlas.path.name} has inputs that are not texts; give atlases of texts")
    seconds = [text if isinstance(text, str) else "" for text in frame["second"]]
    return [(str(text), second) for text, second in zip(frame["text"], seconds, strict=True)]


def _measured(atlas: StoredAtlas, inputs: set[int], keep: bool, without_sinks: bool) -> Scores:
    """Measure these inputs, or read the scores of the atlas where they are all of its inputs."""
    if len(inputs) == atlas.manifest.inputs:
        return measure_atlas(atlas, progress=False, keep=keep, without_sinks=without_sinks)
    return measure_some(atlas, inputs, without_sinks=without_sinks)


def _note(atlases: tuple[StoredAtlas, ...], shared: int, same: bool) -> str:
    sizes = " and ".join(str(atlas.manifest.inputs) for atlas in atlases)
    whole = all(atlas.manifest.inputs == shared for atlas in atlases)
    count = "1 input is" if shared == 1 else f"{shared} inputs are"
    note = f"{count} in {'both' if len(atlases) == 2 else 'all'}"
    if not whole:
        note = f"{note} (of {sizes}); everything here is of these"
    if same:
        return note
    return (
        f"{note}; their tokens differ, so weights are aligned by characters and special tokens "
        "are left out where heads are compared"
    )


def _names(atlases: tuple[StoredAtlas, ...]) -> tuple[str, ...]:
    """Get the names of the models; equal ones get their folder, then their number, in brackets."""
    names = [atlas.manifest.model for atlas in atlases]
    for more in ([atlas.path.name for atlas in atlases], range(len(atlases))):
        names = [
            f"{name} ({word})" if names.count(name) > 1 else name
            for name, word in zip(names, more, strict=True)
        ]
    return tuple(names)


def _same_tokens(atlases: tuple[StoredAtlas, ...], numbers: tuple[int, ...]) -> bool:
    texts = [
        _own_tokens(atlas, number)["text"].tolist()
        for atlas, number in zip(atlases, numbers, strict=True)
    ]
    return all(tokens == texts[0] for tokens in texts)


def _own_tokens(atlas: StoredAtlas, number: int) -> pd.DataFrame:
    """Get the tokens of the first stream of an input; refuses an input that is too long."""
    tokens = atlas.tokens(number, atlas.towers[0].layers[0].queries)
    if len(tokens) > LONGEST:
        raise InputError(
            f"input {number} has {len(tokens)} tokens; heads are compared on inputs of up to "
            f"{LONGEST}"
        )
    return tokens


def _divergence(
    atlases: tuple[StoredAtlas, ...], shared: list[tuple[int, ...]], same: bool, seed: int
) -> tuple[tuple[tuple[str, ...], ...], Floats]:
    """Compare all heads on a sample of rows; returns their names and (all heads, all heads)."""
    tables = [
        [_own_tokens(atlas, numbers[side]) for numbers in shared]
        for side, atlas in enumerate(atlases)
    ]
    parts = [cuts(*frames) for frames in zip(*tables, strict=True)]
    lengths = [len(frame) for frame in tables[0]] if same else [len(part) for part in parts]
    rows = _sample(lengths, seed)
    names, sides = [], []
    for side, atlas in enumerate(atlases):
        numbers = [pair[side] for pair in shared]
        if same:
            heads, weights = gather(atlas, dict(zip(numbers, rows, strict=True)))
        else:
            shares = [onto(*both) for both in zip(parts, tables[side], strict=True)]
            tokens = [looking(*both) for both in zip(shares, rows, strict=True)]
            heads, weights = gather(atlas, dict(zip(numbers, tokens, strict=True)))
            weights = [aligned(*of_input) for of_input in zip(weights, shares, rows, strict=True)]
        names.append(tuple(heads))
        sides.append(weights)
    joined = [np.concatenate(models) for models in zip(*sides, strict=True)]  # (all heads, R, M)
    divergence = mean_divergence(joined, joined)
    np.fill_diagonal(divergence, 0)
    return tuple(names), divergence


def _sample(lengths: list[int], seed: int) -> list[Ints]:
    """Draw at most ROWS rows of inputs of these lengths; returns the rows of each input."""
    # A first row has no choice.
    rows = [(number, row) for number, length in enumerate(lengths) for row in range(1, length)]
    if not rows:
        raise InputError("the shared inputs have a single token each; compare longer texts")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:ROWS])
    picked = np.array(rows)[chosen]
    return [picked[picked[:, 0] == number, 1] for number in range(len(lengths))]


def _statistics(measured: tuple[Scores, ...], names: tuple[str, ...], measure: str) -> pd.DataFrame:
    columns = {
        name: statistics(scores.table[scores.table["measure"] == measure]["value"].tolist())
        for name, scores in zip(names, measured, strict=True)
    }
    return pd.DataFrame(columns)


def _kinds(measured: tuple[Scores, ...], names: tuple[str, ...]) -> pd.DataFrame:
    counts = {
        name: scores.kinds["kind"].value_counts().reindex(KINDS, fill_value=0)
        for name, scores in zip(names, measured, strict=True)
    }
    return pd.DataFrame(counts)
