"""Blocks of rows and shards add up: every score is the same however its input or atlas is cut."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import attention_atlas as aa
from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.definition import SHARE, Measure
from attention_atlas.measure.join import LayerScores, join
from attention_atlas.measure.kinds import Evidence
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.one_input import measure_blocks
from attention_atlas.measure.read_blocks import Computing, Machine, head_ranges, row_blocks
from attention_atlas.measure.row_block import Keys, RowBlock
from attention_atlas.measure.run import measure_atlas
from attention_atlas.measure.shards import Meter, Partial, measure_shard
from attention_atlas.measure.tokens import TokenTable
from tests import atlases
from tests.measure.made_blocks import cut, random_block
from tests.tolerance import reading_tolerance

N = 24
TEXTS: list[Any] = [atlases.SENTENCE, atlases.OTHER, "One, two, one, two, one.", "Yes."]
# A row is a sum of N terms of up to N (tokens of distance), each rounded once; the rest is a mean.
ROUNDING = N * N * np.finfo(np.float64).eps
# Spread is the root of a difference of squares of up to N²: the root of what that may be off by.
ROUNDINGS = {"spread": float(np.sqrt(N * ROUNDING))}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("rows", [1, 7, N])
def test_a_score_does_not_depend_on_the_size_of_blocks(name: str, rows: int) -> None:
    for seed, causal, window in ((0, True, N), (1, False, N), (2, True, 5), (3, False, 3)):
        whole = random_block(N, causal, window, seed, np.float64)
        expected = MEASURES[name].of.over([whole])
        got = MEASURES[name].of.over(cut(whole, rows))
        assert got == pytest.approx(expected, abs=ROUNDINGS.get(name, ROUNDING), nan_ok=True)


@pytest.mark.parametrize("rows", [1, 7])
def test_evidence_for_kinds_does_not_depend_on_the_size_of_blocks(rows: int) -> None:
    for seed, causal, window in ((0, True, N), (1, False, N), (2, True, 5), (3, False, 3)):
        whole = random_block(N, causal, window, seed, np.float64)
        expected = Evidence().over([whole])
        assert Evidence().over(cut(whole, rows)) == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("rows", [1, 7])
def test_blocks_are_dealt_out_as_the_whole_would_be(rows: int) -> None:
    whole = random_block(N, True, N, 5)
    dice = np.random.default_rng(3)
    parts = [block.shuffled(dice).weights for block in cut(whole, rows)]
    expected = whole.shuffled(np.random.default_rng(3)).weights
    assert (np.concatenate(parts, 1) == expected).all()


@pytest.mark.full
def test_a_long_input_never_costs_all_its_pairs() -> None:
    """The most that all measures hold of 2,000 tokens is less than one head's N × N weights."""
    n, step = 2000, 25
    dice = np.random.default_rng(0)
    no, vectors = np.zeros(n, bool), dice.normal(size=(1, n, 8)).astype(np.float32)
    places = np.column_stack([np.zeros(n, int), np.arange(n) // 50, np.arange(n) % 50])
    keys = Keys(dice.integers(0, 99, n), no, no, places, vectors, vectors)

    def blocks() -> Iterator[RowBlock]:
        for start in range(0, n, step):
            rows = np.arange(start, start + step)
            seen = np.arange(n) <= rows[:, None]
            weights = dice.random((1, step, n), np.float32) * seen
            weights /= weights.sum(2, keepdims=True)
            yield RowBlock(weights, rows, seen, keys, True, vectors[:, rows])

    tracemalloc.start()
    try:
        measure_blocks(list(MEASURES.values()), blocks(), dice)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n * 4, f"{peak / 2**20:.0f} MiB"


# Read from a folder -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    path = tmp_path_factory.mktemp("blocks") / "gpt.atlas"
    made = aa.capture("builtin:gpt", TEXTS, path=path, shard_bytes=100_000, progress=False)
    assert len(made.manifest.shards) >= 3
    return made


@pytest.fixture(scope="module")
def seq2seq(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    return atlases.seq2seq(tmp_path_factory.mktemp("blocks"))


def all_keys(pairs: Any, count: int) -> Any:
    """A block ends at the last key that its rows see; the rest is zeros."""
    return np.pad(pairs, [(0, 0)] * (pairs.ndim - 1) + [(0, count - pairs.shape[-1])])


@pytest.mark.parametrize("which", ["atlas", "seq2seq"])
def test_rows_read_in_blocks_are_those_that_the_atlas_gives(
    which: str, request: pytest.FixtureRequest
) -> None:
    atlas: aa.Atlas = request.getfixturevalue(which)
    tokens = TokenTable(atlas.tokens())
    for tower in atlas.towers:
        layer = tower.layers[1]
        name = f"{tower.name}.L1H0" if len(atlas.towers) > 1 else "L1H0"
        stored = atlas.held_layer(0, tower, layer)
        for number in stored.inputs():
            n, m = stored.size(number)
            for heads in head_ranges(layer, m, largest=m):  # one head at a time, seven rows
                blocks = list(row_blocks(stored, number, heads, tokens, Computing(largest=7 * m)))
                assert [len(block.rows) for block in blocks[:-1]] == [7] * ((n - 1) // 7)
                weights = np.concatenate([all_keys(block.weights, m) for block in blocks], 1)
                expected = atlas.layer_weights(number, 1, tower.name)
                off = reading_tolerance(atlas, number)
                assert np.abs(weights - expected[heads]).max() <= off
                seen = np.concatenate([all_keys(block.seen, m) for block in blocks])
                assert (seen == atlas.terms(name, number).seen).all()


def test_an_atlas_that_keeps_weights_alone_is_read_in_blocks(tmp_path: Path) -> None:
    kept: Any = ("weights",)
    atlas = aa.capture("builtin:bert", TEXTS, path=tmp_path / "w.atlas", keep=kept, progress=False)
    (tower,) = atlas.towers
    stored, tokens = atlas.held_layer(0, tower, tower.layers[2]), TokenTable(atlas.tokens())
    _, m = stored.size(0)
    blocks = row_blocks(stored, 0, np.arange(1, 3), tokens, Computing(largest=10 * m))
    weights = np.concatenate([block.weights for block in blocks], 1)
    assert (weights == atlas.layer_weights(0, 2)[1:3]).all()


def test_no_block_holds_more_weights_than_were_asked_for(atlas: aa.Atlas) -> None:
    (tower,) = atlas.towers
    stored, tokens = atlas.held_layer(0, tower, tower.layers[0]), TokenTable(atlas.tokens())
    _, m = stored.size(0)
    for largest in (m, 3 * m, 100 * m):
        for heads in head_ranges(tower.layers[0], m, largest):
            for block in row_blocks(stored, 0, heads, tokens, Computing(largest=largest)):
                assert block.weights.size <= largest


def test_scores_of_an_atlas_do_not_depend_on_the_size_of_blocks(atlas: aa.Atlas) -> None:
    """Blocks of a row and a head, against all rows and heads at once."""
    longest = int(atlas.tokens().groupby("input").size().max())
    small, whole = Meter(atlas, machine=Machine(largest=longest)), Meter(atlas)
    # M weights of a row, each times up to M tokens of distance; w log w is off by less than that
    off = longest**2 * max(reading_tolerance(atlas, number) for number in range(len(atlas)))
    one, other = small.shard(0), whole.shard(0)
    for layer in whole.layers:
        for name, got, expected in zip(
            [measure.name for measure in layer.measures], np.moveaxis(one.of(layer)[1], 1, 0),
            np.moveaxis(other.of(layer)[1], 1, 0), strict=True,
        ):  # fmt: skip
            root = np.sqrt(longest * off)  # of a difference of squares of distances
            most = float(root) if name == "spread" else off
            assert got == pytest.approx(expected, abs=most, nan_ok=True), name
        assert (np.isnan(one.of(layer)[2]) == np.isnan(other.of(layer)[2])).all()


# Shards apart -------------------------------------------------------------------------------------


def equal(one: list[LayerScores], other: list[LayerScores]) -> bool:
    """To the last bit."""
    return all(
        np.array_equal(a.mean.value, b.mean.value, equal_nan=True)
        and np.array_equal(a.mean.interval(), b.mean.interval(), equal_nan=True)
        and np.array_equal(a.chance.value, b.chance.value, equal_nan=True)
        and a.tally.kinds() == b.tally.kinds()
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", MEASURES)
def test_shards_measured_apart_give_what_the_whole_gives_in_any_order(
    name: str, request: pytest.FixtureRequest
) -> None:
    which = "pictures" if MEASURES[name].needs in ("patches", "mixed") else "atlas"
    atlas: aa.Atlas = request.getfixturevalue(which)
    meter = Meter(atlas, {name: MEASURES[name]})
    partials = [meter.shard(number) for number in range(len(atlas.manifest.shards))]
    layers = meter.layers[-2:]
    whole = join(layers, iter(partials))
    assert len(partials) >= 3
    for order in (partials[::-1], partials[1:] + partials[:1]):
        assert equal(join(layers, order), whole)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    from PIL import Image

    from tests.record.test_placeholders import llava

    model, processor = llava()
    asked: list[Any] = [
        {"text": text, "image": Image.new("RGB", (64, 64), (90, 20, 200))}
        for text in ("what is this", "who is there now", "why")
    ]
    path = tmp_path_factory.mktemp("blocks") / "llava.atlas"
    return aa.capture(
        model, asked, tokenizer=processor, path=path, shard_bytes=1000, batch_size=1,
        progress=False,
    )  # fmt: skip


def test_inputs_may_lie_in_any_shard(atlas: aa.Atlas) -> None:
    """The same inputs in one shard or in several: sums are rounded once an input."""
    meter = Meter(atlas)
    partials = [meter.shard(number) for number in range(len(atlas.manifest.shards))]
    names = list(partials[0].arrays)
    together = {
        name: np.concatenate([partial.arrays[name] for partial in partials]) for name in names
    }
    apart = join(meter.layers, partials)
    for one, other in zip(join(meter.layers, [Partial(0, together)]), apart, strict=True):
        most = np.nanmax(np.abs(one.mean.value))
        off = float(len(atlas) * np.finfo(np.float64).eps * most)
        assert one.mean.value == pytest.approx(other.mean.value, abs=off, nan_ok=True)


def test_a_shard_is_written_down_and_read_again(atlas: aa.Atlas, tmp_path: Path) -> None:
    meter = Meter(atlas)
    read = []
    for number in reversed(range(len(atlas.manifest.shards))):
        save_file(measure_shard(atlas, number).arrays, tmp_path / f"{number}.safetensors")
        read.append(Partial(number, load_file(tmp_path / f"{number}.safetensors")))
    here = (meter.shard(number) for number in range(len(read)))
    layers = meter.layers[-2:]
    assert equal(join(layers, read), join(layers, here))


def test_measuring_that_was_interrupted_goes_on_where_it_stopped(
    atlas: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = measure_atlas(atlas, again=True, progress=False)
    whole, measured = Meter.shard, []

    def interrupted(self: Meter, number: int, *more: Any) -> Partial:
        if number == 2 and 2 not in measured:
            measured.append(2)
            raise KeyboardInterrupt
        measured.append(number)
        return whole(self, number, *more)

    monkeypatch.setattr(Meter, "shard", interrupted)
    for name in ("scores.parquet", "kinds.parquet"):
        (atlas.path / name).unlink()
    with pytest.raises(KeyboardInterrupt):
        measure_atlas(atlas, progress=False)
    again = measure_atlas(atlas, progress=False)
    assert measured == [0, 1, 2, *range(2, len(atlas.manifest.shards))]
    assert again.table.equals(expected.table)
    assert not list(atlas.path.glob("*.parts"))


# One file, one line -------------------------------------------------------------------------------


def second_token(block: RowBlock) -> Any:
    """A whole measure, as a person would add it."""
    return block.share((block.columns == 1) & block.seen)


def test_a_measure_is_added_by_one_function_and_one_line_in_the_table(
    atlas: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = Measure(
        "second-token", "on second token", "mean over rows that see it of w on the second token",
        "here", "shuffled", RowMean(second_token, linear=True), bounds=SHARE,
    )  # fmt: skip
    monkeypatch.setitem(MEASURES, added.name, added)
    measure_atlas(atlas, again=True, progress=False)
    heads: Any = atlas.heads().set_index("head")
    rows = [atlas.weights(number, "L3H2")[1:, 1].mean() for number in range(len(atlas))]
    # a mean over inputs of what float32 weights give in float64
    assert heads.loc["L3H2", "second-token"] == pytest.approx(np.mean(rows), rel=1e-6)
