"""Every score is what a slow, plain version of its formula gives; intervals keep their promise."""

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_atlas as aa
from attention_atlas.measure import boot
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.one_input import measure_blocks
from attention_atlas.measure.read_blocks import row_blocks
from attention_atlas.measure.row_block import Keys, RowBlock
from attention_atlas.measure.run import measure_atlas
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.names.token_text import is_punctuation, shown
from tests.atlases import OTHER, PAIR, SENTENCE
from tests.measure.made_blocks import HEADS, cut, random_block
from tests.measure.plain import PLAIN
from tests.tolerance import unit


def plainly(name: str, block: RowBlock, head: int) -> float:
    formula: Any = PLAIN[name]
    keys = block.keys
    found = formula(
        w=block.weights[head], see=block.seen, ids=keys.ids.tolist(),
        special=keys.special.tolist(), punctuation=keys.punctuation.tolist(),
        query=None if block.query is None else block.query[head],
        key=None if keys.vectors is None else keys.vectors[head],
        value=None if keys.values is None else keys.values[head],
        place=None if keys.place is None else keys.place.tolist(),
    )  # fmt: skip
    return float("nan") if found is None else found


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
    rows=st.integers(1, LONGEST),
)
def test_scores_of_random_weights_equal_the_plain_ones(
    name: str, n: int, causal: bool, window: int, seed: int, rows: int
) -> None:
    whole = random_block(n, causal, window, seed)
    got = MEASURES[name].of.over(cut(whole, rows))
    expected = [plainly(name, whole, head) for head in range(HEADS)]
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
    tokens = TokenTable(atlas.tokens())
    held = [atlas.held_layer(shard, tower, layer) for shard in range(len(atlas.manifest.shards))]
    inputs = [
        next(row_blocks(stored, number, np.arange(layer.heads), tokens))
        for stored in held
        for number in stored.inputs()
    ]
    assert len(inputs) == 4 and len(atlas.manifest.shards) > 1
    table = scores.table.set_index(["head", "measure"])
    for name in MEASURES:
        plain = np.array([plainly(name, block, 2) for block in inputs])
        if np.isnan(plain).all():
            assert ("L3H2", name) not in table.index
            continue
        row: Any = table.loc[("L3H2", name)]
        assert row["value"] == pytest.approx(np.nanmean(plain), abs=1e-4), name
        assert row["n"] == np.isfinite(plain).sum()


@pytest.mark.full
def test_chance_of_a_previous_token_head_is_one_over_the_keys_it_sees() -> None:
    n = 6
    weights = np.zeros((1, n, n), np.float32)
    weights[0, 0, 0] = 1
    for row in range(1, n):
        weights[0, row, row - 1] = 1
    no = np.zeros(n, bool)
    block = RowBlock(weights, np.arange(n), np.tri(n, dtype=bool), Keys(np.arange(n), no, no))
    dice = np.random.default_rng(0)
    drawn = [
        measure_blocks([MEASURES["previous"]], [block], dice).chance[0, 0] for _ in range(4000)
    ]
    assert np.mean(drawn) == pytest.approx(np.mean([1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]), abs=0.01)


def test_shuffling_moves_no_weight_to_a_key_that_is_not_seen() -> None:
    block = random_block(9, True, 5, 3)
    dealt = block.shuffled(np.random.default_rng(1)).weights
    assert (dealt[:, ~block.seen] == 0).all()
    assert np.sort(dealt, 2) == pytest.approx(np.sort(block.weights, 2))
    assert not np.allclose(dealt, block.weights)


@pytest.mark.parametrize("count", [8, 30])
def test_intervals_cover_the_truth_as_often_as_they_say(count: int) -> None:
    dice = np.random.default_rng(5)
    trials, truth = 1500, 2 / 7
    values = dice.beta(2, 5, (count, trials))
    values[dice.random(values.shape) < 0.1] = np.nan  # inputs without an answer
    mean = boot.Mean(trials)
    half = count // 2
    mean.add(values[:half], boot.draws(0, tuple(range(half))))
    mean.add(values[half:], boot.draws(0, tuple(range(half, count))))
    low, high = mean.interval(np.tile([0.0, 1.0], (trials, 1)))
    assert mean.value == pytest.approx(np.nanmean(values, 0))
    assert 0.925 <= np.mean((low <= truth) & (truth <= high)) <= 0.975


def test_no_interval_goes_beyond_what_a_score_can_be() -> None:
    shares = np.array([[1.0, 0.0, 0.98], [0.9, 0.02, 1.0], [1.0, 0.0, 0.4]])
    mean = boot.Mean(3)
    mean.add(shares, boot.draws(0, (0, 1, 2)))
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
    got = MEASURES[name].of.over([random_block(n, causal, 20, seed)])
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
    mean.add(np.array([[0.2], [0.4]]), boot.draws(0, (0, 1)))
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


def test_the_width_of_an_interval_is_that_of_a_t_interval() -> None:
    # t for 2 and 29 degrees of freedom, 97.5 %, as printed in tables; the normal one is 1.960
    assert boot.wider(3) == pytest.approx(4.303 / 1.960 * np.sqrt(3 / 2), rel=1e-3)
    assert boot.wider(30) == pytest.approx(2.045 / 1.960 * np.sqrt(30 / 29), rel=1e-3)


def test_a_folder_that_cannot_be_written_to_is_measured_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: Any, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    atlas = aa.capture("builtin:gpt", SENTENCE, path=tmp_path / "ro.atlas", progress=False)
    monkeypatch.setattr("attention_atlas.store.files.os.replace", refuse)
    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    scores = measure_atlas(atlas, progress=False)
    assert len(scores.kinds) == 36 and not (atlas.path / "scores.parquet").exists()
    assert "kind" in atlas.heads().columns
    assert "are not kept" in caplog.text and "Read-only file system" in caplog.text


def test_vectors_that_are_equal_but_for_rounding_have_no_distance_dot_correlation() -> None:
    count, mean, rounding = np.array(9.0), np.zeros(1), np.array([-1e-9])
    assert np.isnan(MEASURES["distance-dot"].of.value((count, mean, mean, rounding, mean, mean)))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_quantiles_are_those_of_numpy_without_the_missing(
    rows: int, columns: int, missing: int, seed: int
) -> None:
    dice = np.random.default_rng(seed)
    values = dice.normal(size=(rows, columns))
    values[dice.random(values.shape) < missing / 10] = np.nan
    values[0] = dice.normal(size=columns)  # no column without an answer
    expected = np.nanquantile(values, [0.025, 0.975], axis=0)
    assert boot.quantiles(values, [0.025, 0.975]) == pytest.approx(expected, rel=1e-12)


def test_many_inputs_added_one_by_one_have_the_interval_of_all_at_once() -> None:
    values = np.random.default_rng(0).random((150, 4))
    values[3:9, 1] = np.nan
    draws = boot.draws(0, tuple(range(150)))
    together, apart = boot.Mean(4), boot.Mean(4)
    together.add(values, draws)
    for number in range(150):
        apart.add(values[number : number + 1], draws[number : number + 1])
    expected = together.interval()
    for got, wanted in zip(apart.interval(), expected, strict=True):
        assert got == pytest.approx(wanted, rel=150 * float(np.finfo(np.float32).eps))
