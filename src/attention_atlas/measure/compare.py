"""How do two models differ on the same inputs?

Statistics of importance side by side (the study's Table 1, and without trivial rows), how many
heads of each kind, and each head's nearest head in the other model. Where tokenizers differ,
weights are aligned by characters first, and that is said.
"""

from dataclasses import dataclass

import pandas as pd

from attention_atlas.errors import InputError
from attention_atlas.measure.align import aligned, cuts, onto
from attention_atlas.measure.alike import LONGEST, mean_divergence, of_first_stream
from attention_atlas.measure.importance import statistics
from attention_atlas.measure.kinds import KINDS
from attention_atlas.measure.look import Floats
from attention_atlas.measure.run import measure_atlas
from attention_atlas.store.atlas import Atlas
from attention_atlas.store.scores import Scores
from attention_atlas.store.stream import Piece

INPUTS = 16  # shared inputs on which heads are set against each other


@dataclass(frozen=True)
class Comparison:
    names: tuple[str, str]
    statistics: pd.DataFrame  # Table 1, a column a model
    statistics_chosen: pd.DataFrame  # the same without rows that see one key
    kinds: pd.DataFrame  # heads of each kind, a column a model
    heads: tuple[tuple[str, ...], tuple[str, ...]]
    divergence: Floats  # (heads of the first, heads of the second), bits
    shared: int  # inputs that both have
    aligned: bool  # by characters, because the tokenizers differ
    note: str

    def nearest(self, head: str) -> tuple[str, float]:
        """The head of the second model that does most alike."""
        row = self.divergence[self.heads[0].index(head)]
        return self.heads[1][int(row.argmin())], float(row.min())


def compare(first: Atlas, second: Atlas) -> Comparison:
    """Two atlases of the same texts; both are measured if they were not yet."""
    pairs = shared_inputs(first, second)
    measured = [measure_atlas(atlas, progress=False) for atlas in (first, second)]
    names = _names(first, second)
    same = all(_same_tokens(first, second, pair) for pair in pairs[:INPUTS])
    heads, divergence = _divergence(first, second, pairs[:INPUTS], same)
    note = (
        f"{len(pairs)} inputs are in both"
        if same
        else f"{len(pairs)} inputs are in both; their tokens differ, so weights are aligned by "
        "characters and special tokens are left out"
    )
    return Comparison(
        names, _statistics(measured, names, "importance"),
        _statistics(measured, names, "importance-chosen"), _kinds(measured, names), heads,
        divergence, len(pairs), not same, note,
    )  # fmt: skip


def shared_inputs(first: Atlas, second: Atlas) -> list[tuple[int, int]]:
    """Numbers of the inputs that have the same text in both."""
    places = {key: number for number, key in enumerate(_texts(second))}
    found = [(i, places[key]) for i, key in enumerate(_texts(first)) if key in places]
    if not found:
        raise InputError(
            f"{first.path.name} and {second.path.name} have no input in common; "
            "capture both models on the same texts"
        )
    return found


def _texts(atlas: Atlas) -> list[tuple[str, str]]:
    frame = atlas.inputs()
    if not frame["kind"].isin(["text", "pair"]).all():
        raise InputError(f"{atlas.path.name} holds inputs that are no texts; compare texts")
    seconds = [one if isinstance(one, str) else "" for one in frame["second"]]
    return [(str(text), second) for text, second in zip(frame["text"], seconds, strict=True)]


def _names(first: Atlas, second: Atlas) -> tuple[str, str]:
    a, b = first.manifest.model, second.manifest.model
    return (a, b) if a != b else (f"{a} ({first.path.name})", f"{b} ({second.path.name})")


def _same_tokens(first: Atlas, second: Atlas, pair: tuple[int, int]) -> bool:
    a, b = (_own_tokens(atlas, number) for atlas, number in zip((first, second), pair, strict=True))
    return a["text"].tolist() == b["text"].tolist()


def _own_tokens(atlas: Atlas, number: int) -> pd.DataFrame:
    return atlas.tokens(number, atlas.towers[0].layers[0].queries)


def _divergence(
    first: Atlas, second: Atlas, pairs: list[tuple[int, int]], same: bool
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], Floats]:
    tables = [[_own_tokens(atlas, pair[side]) for pair in pairs]
              for side, atlas in enumerate((first, second))]  # fmt: skip
    parts = [cuts(a, b) for a, b in zip(*tables, strict=True)]
    sides = []
    for side, atlas in enumerate((first, second)):
        numbers = [pair[side] for pair in pairs]
        names, weights = _all_weights(atlas, numbers)
        if not same:
            weights = [
                aligned(one, onto(part, table))
                for one, part, table in zip(weights, parts, tables[side], strict=True)
            ]
        sides.append((tuple(names), weights))
    (names_a, a), (names_b, b) = sides
    return (names_a, names_b), mean_divergence(a, b)


def _all_weights(atlas: Atlas, numbers: list[int]) -> tuple[list[str], list[Floats]]:
    """Names of the heads of the first stream, and (heads, N, N) for each input."""
    names, found = of_first_stream(atlas, set(numbers), _whole)
    return names, [found[number] for number in numbers]


def _whole(piece: Piece) -> Floats:
    if len(piece.seen) > LONGEST:
        raise InputError(
            f"input {piece.input} has {len(piece.seen)} tokens; heads are compared "
            f"on inputs of up to {LONGEST}"
        )
    return piece.weights


def _statistics(measured: list[Scores], names: tuple[str, str], measure: str) -> pd.DataFrame:
    columns = {
        name: statistics(scores.table[scores.table["measure"] == measure]["value"].tolist())
        for name, scores in zip(names, measured, strict=True)
    }
    return pd.DataFrame(columns)


def _kinds(measured: list[Scores], names: tuple[str, str]) -> pd.DataFrame:
    counts = {
        name: scores.kinds["kind"].value_counts().reindex(KINDS, fill_value=0)
        for name, scores in zip(names, measured, strict=True)
    }
    return pd.DataFrame(counts)
