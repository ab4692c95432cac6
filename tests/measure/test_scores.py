"""Every score is what a slow, plain version of its formula gives; intervals keep their promise."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_atlas as aa
from attention_atlas.measure import boot
from attention_atlas.measure.collect import Gathering, chance_of
from attention_atlas.measure.look import Look
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.run import measure_atlas
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.names.token_text import is_punctuation, shown
from attention_atlas.store.passes import pieces
from tests.atlases import OTHER, PAIR, SENTENCE
from tests.measure.plain import PLAIN
from tests.tolerance import reading_tolerance, unit

HEADS = 2


def plainly(name: str, look: Look, head: int) -> float:
    formula: Any = PLAIN[name]
    found = formula(
        w=look.weights[head], see=look.seen, ids=look.ids.tolist(), special=look.special.tolist(),
        punctuation=look.punctuation.tolist(),
        query=None if look.query is None else look.query[head],
        key=None if look.key is None else look.key[head],
        value=None if look.value is None else look.value[head],
        place=None if look.place is None else look.place.tolist(),
    )  # fmt: skip
    return float("nan") if found is None else found


def random_look(n: int, causal: bool, window: int, seed: int) -> Look:
    dice = np.random.default_rng(seed)
    seen = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    seen &= np.abs(np.subtract.outer(np.arange(n), np.arange(n))) < window
    weights = np.exp(dice.normal(0, 2, (HEADS, n, n))) * seen
    weights /= weights.sum(2, keepdims=True)
    vectors = [dice.normal(size=(HEADS, n, 4)).astype(np.float32) for _ in range(3)]
    marks = dice.random((2, n)) < 0.25
    ids = dice.integers(-1, 4, n)
    places = dice.integers(0, 3, (n, 3))
    places[marks[0] | (dice.random(n) < 0.3)] = -1  # special tokens and words are no patches
    query, key, value = vectors
    return Look(
        weights.astype(np.float32), seen, ids, marks[0], marks[1] & ~marks[0], True, query, key,
        value, places,
    )  # fmt: skip


LONGEST = 14
# A score adds up to n weights of a row, each times at most n steps: n u n, in two computations.
ROUNDING = 2 * LONGEST**2 * unit()


def test_every_measure_has_a_plain_version_and_says_what_it_is() -> None:
    assert list(PLAIN) == list(MEASURES)
    for measure in MEASURES.values():
        assert measure.formula and measure.source and "\n" not in measure.formula


@pytest.mark.parametrize("name", MEASURES)
@settings(max_examples=25)
@given(
    n=st.integers(1, LONGEST),
    causal=st.booleans(),
    window=st.integers(1, 20),
    seed=st.integers(0, 999),
)
def test_scores_of_random_weights_equal_the_plain_ones(
    name: str, n: int, causal: bool, window: int, seed: int
) -> None:
    look = random_look(n, causal, window, seed)
    got = MEASURES[name].of(look)
    expected = [plainly(name, look, head) for head in range(HEADS)]
    assert got == pytest.approx(expected, abs=ROUNDING, nan_ok=True)


@pytest.fixture(scope="module", params=["builtin:gpt", "builtin:bert"])
def atlas(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    texts: list[Any] = [SENTENCE, OTHER, "One, two, one, two, one.", "Yes."]
    path = tmp_path_factory.mktemp("scores") / "real.atlas"
    return aa.capture(request.param, texts, path=path, shard_bytes=100_000, progress=False)


def test_scores_of_real_weights_equal_the_plain_ones_over_the_corpus(atlas: aa.Atlas) -> None:
    scores = measure_atlas(atlas, progress=False)
    tower = atlas.towers[0]
    layer = tower.layers[3]
    gathering = Gathering(atlas, tower, layer, MEASURES.values(), 0)
    tokens = TokenTable(atlas)
    looks = [
        gathering._look(piece, tokens)
        for shard in range(len(atlas.manifest.shards))
        for piece in pieces(atlas, shard, tower, layer)
    ]
    assert len(looks) == 4 and len(atlas.manifest.shards) > 1
    table = scores.table.set_index(["head", "measure"])
    for name in MEASURES:
        plain = np.array([plainly(name, look, 2) for look in looks])
        if np.isnan(plain).all():
            assert ("L3H2", name) not in table.index
            continue
        row: Any = table.loc[("L3H2", name)]
        assert row["value"] == pytest.approx(np.nanmean(plain), abs=1e-4), name
        assert row["n"] == np.isfinite(plain).sum()


def test_weights_of_the_pass_are_those_that_the_atlas_gives(atlas: aa.Atlas) -> None:
    tower = atlas.towers[0]
    seen = set()
    for shard in range(len(atlas.manifest.shards)):
        for piece in pieces(atlas, shard, tower, tower.layers[1]):
            expected = atlas.layer_weights(piece.input, 1)
            off = reading_tolerance(atlas, piece.input)
            assert np.abs(piece.weights - expected).max() <= off
            assert (piece.seen == atlas.terms("L1H0", piece.input).seen).all()
            seen.add(piece.input)
    assert seen == set(range(4))


def test_chance_of_a_previous_token_head_is_one_over_the_keys_it_sees() -> None:
    n = 6
    weights = np.zeros((1, n, n), np.float32)
    weights[0, 0, 0] = 1
    for row in range(1, n):
        weights[0, row, row - 1] = 1
    no = np.zeros(n, bool)
    look = Look(weights, np.tri(n, dtype=bool), np.arange(n), no, no)
    dice = np.random.default_rng(0)
    drawn = [chance_of([MEASURES["previous"]], look, dice)[0, 0] for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(np.mean([1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]), abs=0.01)


def test_shuffling_moves_no_weight_to_a_key_that_is_not_seen() -> None:
    look = random_look(9, True, 5, 3)
    dealt = look.shuffled(np.random.default_rng(1)).weights
    assert (dealt[:, ~look.seen] == 0).all()
    assert np.sort(dealt, 2) == pytest.approx(np.sort(look.weights, 2))
    assert not np.allclose(dealt, look.weights)


@pytest.mark.parametrize("count", [8, 30])
def test_intervals_cover_the_truth_as_often_as_they_say(count: int) -> None:
    dice = np.random.default_rng(5)
    trials, truth = 1500, 2 / 7
    values = dice.beta(2, 5, (count, trials))
    values[dice.random(values.shape) < 0.1] = np.nan  # inputs without an answer
    mean = boot.Mean(trials)
    half = count // 2
    mean.add(values[:half], boot.draws(0, list(range(half))))
    mean.add(values[half:], boot.draws(0, list(range(half, count))))
    low, high = mean.interval(np.tile([0.0, 1.0], (trials, 1)))
    assert mean.value == pytest.approx(np.nanmean(values, 0))
    assert 0.925 <= np.mean((low <= truth) & (truth <= high)) <= 0.975


def test_no_interval_goes_beyond_what_a_score_can_be() -> None:
    shares = np.array([[1.0, 0.0, 0.98], [0.9, 0.02, 1.0], [1.0, 0.0, 0.4]])
    mean = boot.Mean(3)
    mean.add(shares, boot.draws(0, [0, 1, 2]))
    free = mean.interval()
    assert free[1].max() > 1 and free[0].min() < 0  # three inputs: far too wide
    low, high = mean.interval(np.tile([0.0, 1.0], (3, 1)))
    assert (low >= 0).all() and (high <= 1).all()
    assert ((low <= mean.value) & (mean.value <= high)).all()
    inside = (free[0] >= 0) & (free[1] <= 1)
    assert low[inside] == pytest.approx(free[0][inside])


@pytest.mark.parametrize("name", MEASURES)
@settings(max_examples=15)
@given(n=st.integers(2, 14), causal=st.booleans(), seed=st.integers(0, 999))
def test_scores_stay_within_the_range_that_they_state(
    name: str, n: int, causal: bool, seed: int
) -> None:
    got = MEASURES[name].of(random_look(n, causal, 20, seed))
    low, high = MEASURES[name].bounds
    known = got[np.isfinite(got)]
    assert (known >= low - 1e-5).all() and (known <= high + 1e-5).all()


def test_stored_intervals_are_within_the_stated_range(atlas: aa.Atlas) -> None:
    scores = measure_atlas(atlas, progress=False)
    assert scores.measures["entropy"]["range"] == "0 to 1"
    assert scores.measures["distance"]["range"] == "0 or more"
    assert scores.measures["distance-dot"]["range"] == "−1 to 1"
    for name, measure in MEASURES.items():
        rows = scores.table[scores.table["measure"] == name].dropna()
        low, high = measure.bounds
        assert (rows["low"] >= low - 1e-5).all() and (rows["high"] <= high + 1e-5).all(), name


def test_fewer_than_three_inputs_give_no_interval() -> None:
    mean = boot.Mean(1)
    mean.add(np.array([[0.2], [0.4]]), boot.draws(0, [0, 1]))
    assert mean.value == pytest.approx([0.3])
    assert np.isnan(mean.interval()).all()


@pytest.mark.parametrize(
    ("text", "is_one"), [("Ġ,", True), ("##.", True), ("#", True), ("Ġthe", False), ("▁", False)]
)
def test_punctuation_is_found_under_the_marks_of_tokenizers(text: str, is_one: bool) -> None:
    assert is_punctuation(shown([text])[0]) is is_one


def test_a_corpus_of_one_token_inputs_is_refused(tmp_path: Path) -> None:
    import torch

    inputs: list[Any] = [{"input_ids": torch.tensor([[number]])} for number in (5, 9)]
    short = aa.capture("builtin:gpt", inputs, path=tmp_path / "short.atlas", progress=False)
    with pytest.raises(aa.InputError, match="single token"):
        measure_atlas(short, progress=False)


def test_scores_are_read_back_and_made_again_only_when_asked(atlas: aa.Atlas) -> None:
    first = measure_atlas(atlas, progress=False)
    file = atlas.path / "scores.parquet"
    before = file.stat().st_mtime_ns
    again = measure_atlas(atlas, progress=False)
    assert file.stat().st_mtime_ns == before
    assert again.table.equals(first.table) and again.measures == first.measures
    heads = atlas.heads()
    assert set(heads["kind"].dropna()) <= {
        "parallel", "radioactive", "homogeneous", "X-type", "compound", "mixed",
    }  # fmt: skip
    assert {"entropy", "importance"} <= set(heads.columns)


def test_pairs_and_cross_attention_are_measured_too(tmp_path: Path) -> None:
    from tests import atlases

    scores = measure_atlas(atlases.seq2seq(tmp_path), progress=False)
    cross = scores.table[scores.table["head"].str.startswith("cross.")]
    assert {"entropy", "coverage"} <= set(cross["measure"])
    assert not {"previous", "self", "distance"} & set(cross["measure"])
    pair: Any = PAIR
    bert = aa.capture("builtin:bert", [pair], path=tmp_path / "pair.atlas", progress=False)
    assert len(measure_atlas(bert, progress=False).kinds) == 36
