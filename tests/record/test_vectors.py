"""A sample of vectors, or none, is kept; the scores are those of every input all the same."""

import gc
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import LlamaConfig, LlamaModel

import attention_atlas as aa
from attention_atlas.measure import read_blocks
from attention_atlas.measure.alike import alike, sample_rows
from attention_atlas.measure.read_blocks import Machine
from attention_atlas.measure.run import measure_atlas
from attention_atlas.measure.shards import Meter
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.page.answers.about import about
from attention_atlas.page.answers.mean_pattern import mean_pattern
from attention_atlas.record.write.options import sample_size, score_rows_of
from attention_atlas.record.write.shard_tensors import Joined
from attention_atlas.store.held_shard import HeldShard
from attention_atlas.studies import capture
from tests.store.test_format import SMALL
from tests.tolerance import reading_tolerance

LENGTHS = (9, 6, 14, 8, 21, 7, 12, 5, 16, 10)
FEW = 6 * 1024  # bytes of a shard, so that there are several


def captured(folder: Path, vectors: str, **options: Any) -> aa.Atlas:
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(**SMALL)).eval()
    dice = torch.Generator().manual_seed(1)
    inputs: list[Any] = [
        {"input_ids": torch.randint(5, 99, (1, n), generator=dice)} for n in LENGTHS
    ]
    return aa.capture(
        model, inputs, path=folder, progress=False, vectors=vectors, shard_bytes=FEW, **options
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    atlas = captured(tmp_path_factory.mktemp("whole") / "x.atlas", "all")
    atlas.measure(progress=False)
    return atlas


@pytest.mark.parametrize("vectors", ["sample:30", "none"])
def test_scores_and_kinds_are_those_of_an_atlas_with_all_vectors(
    vectors: str, whole: aa.Atlas, tmp_path: Path
) -> None:
    atlas = captured(tmp_path / "x.atlas", vectors)
    assert len(atlas.manifest.shards) > 1
    ours, theirs = atlas.scores(), whole.scores()
    assert ours is not None and theirs is not None
    pd.testing.assert_frame_equal(ours.table, theirs.table)
    pd.testing.assert_frame_equal(ours.kinds, theirs.kinds)
    assert ours.measures == theirs.measures
    assert ours.options == theirs.options
    assert not list((tmp_path / "x.atlas").glob("*.parts"))


def test_vectors_are_measured_where_the_capture_holds_them(
    whole: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, which they never leave, but with torch on the CPU."""

    class AsTheyAre(HeldShard):
        def __init__(self, towers: Any, tensors: Any, tokens: Any, _: bool):
            super().__init__(towers, tensors, tokens, as_they_are=True)

    def left(*_: Any) -> Any:
        raise AssertionError("vectors were copied to NumPy")

    monkeypatch.setattr("attention_atlas.store.held_shard.HeldShard", AsTheyAre)
    monkeypatch.setattr(read_blocks, "find_machine", lambda device: read_blocks.Machine("cpu"))
    monkeypatch.setattr(read_blocks, "WORTH_A_GPU", 0)
    monkeypatch.setattr(Joined, "__array__", left)
    ours = captured(tmp_path / "x.atlas", "none").scores()
    monkeypatch.undo()
    theirs, n = whole.scores(), max(LENGTHS)
    assert ours is not None and theirs is not None
    off = n * n * max(reading_tolerance(whole, number) for number in range(len(LENGTHS)))
    for measure, rows in ours.table.groupby("measure"):
        expected = theirs.table[theirs.table["measure"] == measure]
        assert rows["head"].tolist() == expected["head"].tolist()
        most = np.sqrt(n * off) if measure == "spread" else off
        for column in ("value", "chance"):
            np.testing.assert_allclose(rows[column], expected[column], rtol=0, atol=most)


def test_a_sample_keeps_whole_inputs_until_it_has_so_many_tokens(
    whole: aa.Atlas, tmp_path: Path
) -> None:
    atlas = captured(tmp_path / "x.atlas", "sample:40")
    kept = sorted(atlas.manifest.kept_inputs or ())
    tokens = [LENGTHS[number] for number in kept]
    assert 0 in kept and sum(tokens) >= 40
    assert len(kept) < len(LENGTHS)
    for number in kept:
        np.testing.assert_array_equal(atlas.weights(number, "L1H2"), whole.weights(number, "L1H2"))
    assert len(atlas.queries("L1H2")) == sum(tokens) == len(atlas.vector_tokens("text"))
    expected = np.concatenate([whole.queries("L1H2", number) for number in kept])
    np.testing.assert_array_equal(atlas.queries("L1H2"), expected)
    assert len(atlas.tokens()) == sum(LENGTHS)


def test_the_same_seed_draws_the_same_sample_and_another_seed_another(tmp_path: Path) -> None:
    drawn = [
        captured(tmp_path / str(place), "sample:60", seed=seed).manifest.kept_inputs
        for place, seed in enumerate((3, 3, 4))
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_measures_is_not_for_a_caller_to_choose() -> None:
    with pytest.raises(aa.InputError, match="takes no measuring"):
        aa.capture("builtin:gpt", "a cat", measuring=3, progress=False)


def test_vectors_that_are_not_there_are_missed_in_one_sentence(tmp_path: Path) -> None:
    atlas = captured(tmp_path / "x.atlas", "sample:30")
    missing = next(n for n in range(len(LENGTHS)) if n not in (atlas.manifest.kept_inputs or ()))
    for ask in (
        lambda: atlas.weights(missing, "L0H0"),
        lambda: atlas.keys("L0H0", missing),
        lambda: atlas.terms("L0H0", missing),
        lambda: atlas.shape(missing, 0),
    ):
        with pytest.raises(PickError, match=f"input {missing} has no vectors.*sample:30"):
            ask()
    bare = captured(tmp_path / "y.atlas", "none")
    for refused in (
        lambda: bare.weights(0, "L0H0"),
        lambda: bare.queries("L0H0"),
        lambda: bare.layout("pca", progress=False),
        lambda: bare.measure(again=True, progress=False),
    ):
        with pytest.raises(PickError, match="vectors='none'"):
            refused()


def test_a_map_is_made_of_the_sample(tmp_path: Path) -> None:
    atlas = captured(tmp_path / "x.atlas", "sample:40")
    made = atlas.layout("pca", progress=False, device="cpu")
    kept = atlas.manifest.kept_inputs or frozenset()
    (group,) = made.groups.values()
    inputs = atlas.tokens()["input"].to_numpy()
    assert set(inputs[group.query_tokens]) == set(kept)
    assert len(group.query_tokens) == sum(LENGTHS[number] for number in kept)


@pytest.mark.parametrize("vectors", ["sample:30", "none"])
def test_the_page_says_what_is_kept(vectors: str, tmp_path: Path) -> None:
    atlas = captured(tmp_path / "x.atlas", vectors)
    told = about(atlas)
    assert any("scores are of all 10 inputs" in note and vectors in note for note in told.notes)
    assert ("vectors='none'" in told.no_maps) == (vectors == "none")


def test_the_page_shows_the_mean_of_the_sample_and_which_heads_are_alike_in_it(
    tmp_path: Path,
) -> None:
    atlas = captured(tmp_path / "x.atlas", "sample:40")
    kept = sorted(atlas.manifest.kept_inputs or ())
    mean = mean_pattern(atlas, "L1H2")
    assert mean.inputs == len(kept)
    assert mean.longest == max(LENGTHS[number] for number in kept)
    assert set(sample_rows(atlas, 0)) <= set(kept)
    assert len(alike(atlas).heads) == 8


def test_an_interrupted_capture_resumes_with_its_scores(
    whole: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attention_atlas.studies import capture as study

    real, left = study.start_measuring, [2]

    def stops(*given: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(study, "start_measuring", stops)
    with pytest.raises(KeyboardInterrupt):
        captured(tmp_path / "x.atlas", "none")
    monkeypatch.undo()
    scores, expected = captured(tmp_path / "x.atlas", "none").scores(), whole.scores()
    assert scores is not None and expected is not None
    pd.testing.assert_frame_equal(scores.table, expected.table)


@pytest.mark.parametrize("asked", ["some", "sample:", "sample:0", "sample:-3", "sample:x"])
def test_another_word_is_refused(asked: str) -> None:
    with pytest.raises(InputError, match="as in 'sample:20000'"):
        sample_size(asked)


def test_older_captures_keep_their_fingerprint(tmp_path: Path) -> None:
    atlas = captured(tmp_path / "x.atlas", "all")
    assert "vectors" not in atlas.manifest.options
    assert atlas.manifest.kept_inputs is None


def test_rows_are_drawn_of_longer_inputs_and_the_scores_say_so(tmp_path: Path) -> None:
    """The scores are those of the same rows of an atlas with all vectors."""
    drawn = captured(tmp_path / "drawn.atlas", "none", score_rows=8)
    whole = captured(tmp_path / "whole.atlas", "all")
    expected = measure_atlas(whole, machine=Machine(rows=8), keep=False, progress=False)
    ours = drawn.scores()
    assert ours is not None and ours.options["rows"] == 8
    assert ours.options["longer inputs"] == sum(length > 8 for length in LENGTHS)
    pd.testing.assert_frame_equal(ours.table, expected.table)
    pd.testing.assert_frame_equal(ours.kinds, expected.kinds)
    assert "at most 8 rows drawn" in ours.measures["entropy"]["formula"]
    again = drawn.measure(progress=False)  # there are no vectors to measure other rows of
    pd.testing.assert_frame_equal(again.table, ours.table)


def test_few_rows_are_drawn_of_many_inputs_and_all_of_few() -> None:
    assert [score_rows_of(None, inputs) for inputs in (0, 1, 16, 160)] == [2048, 2048, 128, 64]
    assert score_rows_of(3, 160) == 3


def test_a_gpu_is_given_its_work_before_any_score_is_waited_for(whole: aa.Atlas) -> None:
    """As on a GPU, but with torch on the CPU: what is begun first and read later is the same."""
    machine = Machine("cpu", held=True)
    meter = Meter(whole, machine=machine)
    read = meter.start(0)
    later, at_once = read().arrays, meter.shard(0).arrays
    assert later.keys() == at_once.keys()
    for name in later:
        np.testing.assert_array_equal(later[name], at_once[name])


def test_one_shard_at_the_most_waits_to_be_measured_and_none_is_held_after() -> None:
    """On a GPU a thread asks for measures; what it held of the card is free when they are read."""
    steps: list[str] = []
    told = Event()

    class Vectors:
        """What a shard holds."""

    def start(name: str, vectors: Vectors) -> Callable[[], Any]:
        told.wait(10)
        steps.append(name)
        if name == "broken":
            raise InputError("it cannot be measured")
        return lambda: (name, vectors)

    kept = Vectors()
    gone = weakref.ref(kept)
    first: Any = capture._in_turn(partial(start, "first", kept))
    second = Thread(target=lambda: capture._in_turn(partial(start, "broken", Vectors())))
    second.start()  # it waits for its turn
    assert not steps
    told.set()
    second.join(10)
    assert first.result()()[0] == "first" and steps[0] == "first"
    # One that fails frees its place, too.
    third: Any = capture._in_turn(partial(start, "third", Vectors()))
    assert third.result()()[0] == "third" and "broken" in steps
    del first, kept
    gc.collect()
    assert gone() is None
