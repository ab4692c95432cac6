"""Measures at size: on torch as on NumPy, chance without shuffling, rows drawn of long inputs."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import attention_atlas as aa
from attention_atlas.measure.accumulate import RowMean
from attention_atlas.measure.input_meter import InputMeter, group_alike
from attention_atlas.measure.kinds import Evidence
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.one_input import measure_blocks
from attention_atlas.measure.read_blocks import (
    LARGEST,
    Computing,
    Machine,
    row_blocks,
    stacked_blocks,
)
from attention_atlas.measure.row_block import Keys, RowBlock
from attention_atlas.measure.run import measure_atlas
from attention_atlas.measure.shards import Meter
from attention_atlas.measure.tokens import TokenTable
from attention_atlas.store.form import CAUSAL, Form
from attention_atlas.store.manifest import Layer
from attention_atlas.store.rows import StoredLayer
from attention_atlas.store.shard import Block, HeldTensors, Packer
from tests import atlases
from tests.measure.made_blocks import cut, random_block
from tests.measure.test_blocks import ROUNDING, ROUNDINGS, N
from tests.tolerance import softmax_tolerance, unit

CASES = ((0, True, N), (1, False, N), (2, True, 5), (3, False, 3))  # seed, causal, window
LINEAR = [
    name
    for name, measure in MEASURES.items()
    if isinstance(measure.of, RowMean) and measure.of.linear
]
SHUFFLED = [name for name, measure in MEASURES.items() if measure.chance == "shuffled"]


def on_torch(whole: Any) -> Any:
    """The same block or keys as tensors."""
    import torch

    def moved(value: Any) -> Any:
        if isinstance(value, Keys):
            return on_torch(value)
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    return replace(
        whole, **{field.name: moved(getattr(whole, field.name)) for field in fields(whole)}
    )


def narrowed(block: RowBlock) -> RowBlock:
    """The same block without the keys after the last that it sees."""
    width = int(np.flatnonzero(block.seen.any(0))[-1]) + 1
    return replace(block, weights=block.weights[:, :, :width], seen=block.seen[:, :width])


# Torch and NumPy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_gives_the_same_on_torch_and_without_keys_that_no_row_sees(name: str) -> None:
    for case in CASES:
        whole = random_block(N, *case[1:], case[0], np.float64)
        expected = MEASURES[name].of.over([whole])
        narrow = [narrowed(block) for block in cut(whole, 7)]
        for blocks in (narrow, [on_torch(block) for block in narrow]):
            got = MEASURES[name].of.over(blocks)
            assert isinstance(got, np.ndarray)
            assert got == pytest.approx(expected, abs=ROUNDINGS.get(name, ROUNDING), nan_ok=True)


def test_kinds_are_the_same_on_torch_and_without_keys_that_no_row_sees() -> None:
    for case in CASES:
        whole = random_block(N, *case[1:], case[0], np.float64)
        expected = Evidence().over([whole])
        narrow = [narrowed(block) for block in cut(whole, 7)]
        for blocks in (narrow, [on_torch(block) for block in narrow]):
            assert Evidence().over(blocks) == pytest.approx(expected, abs=ROUNDING)


def test_chance_is_the_same_on_torch() -> None:
    whole = random_block(N, True, N, 4, np.float64)
    measures = list(MEASURES.values())
    both = [
        measure_blocks(measures, [block], np.random.default_rng(0)).chance
        for block in (whole, on_torch(whole))
    ]
    off = max(ROUNDING, *ROUNDINGS.values())
    assert both[0] == pytest.approx(both[1], abs=off, nan_ok=True)


# Chance -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_said_to_be_linear_is(name: str) -> None:
    """But for a constant: what a mixture of two rows gives is the mixture of what they give."""
    of: Any = MEASURES[name].of
    for case in CASES:
        one = random_block(N, *case[1:], case[0], np.float64)
        other = random_block(N, *case[1:], case[0] + 9, np.float64).weights
        mixed = of.of(one.of(0.3 * one.weights + 0.7 * other))
        expected = 0.3 * of.of(one) + 0.7 * of.of(one.of(other))
        assert mixed == pytest.approx(expected, abs=ROUNDING, nan_ok=True)


def shuffled_by_hand(block: RowBlock, dice: np.random.Generator) -> RowBlock:
    """Every row of every head shuffled by itself, in loops."""
    weights = np.zeros_like(block.weights)
    for head in range(len(weights)):
        for row, seen in enumerate(block.seen):
            keys = np.flatnonzero(seen)
            weights[head, row, keys] = dice.permutation(block.weights[head, row, keys])
    return block.of(weights)


@pytest.mark.full
@pytest.mark.parametrize("name", SHUFFLED)
@pytest.mark.parametrize("sink", [0.0, 0.4])
@pytest.mark.parametrize("causal", [True, False])
def test_chance_is_what_many_shuffles_give_on_average(name: str, sink: float, causal: bool) -> None:
    """Within five standard errors: one in two million by chance for each number."""
    n, shuffles = 12, 400
    block = random_block(n, causal, n, 6, np.float64)
    grid = np.column_stack([np.zeros(n, int), np.arange(n) // 4, np.arange(n) % 4])
    grid[:2] = -1  # a word and a class token before the patches
    marks = np.arange(n) == 1
    keys = replace(block.tokens, place=grid, special=marks, punctuation=np.arange(n) == 4)
    block = replace(block, weights=block.weights * (1 - sink), tokens=keys)
    dice = np.random.default_rng(1)
    measure = MEASURES[name]
    drawn = np.array([measure.of.over([shuffled_by_hand(block, dice)]) for _ in range(shuffles)])
    if np.isnan(drawn).all():
        assert causal, "all pairs are seen, so every measure has an answer"
        return
    times = 1 if name in LINEAR else shuffles
    ours = np.array([measure_blocks([measure], [block], dice).chance[0] for _ in range(times)])
    error = np.sqrt((drawn.var(0) + ours.var(0)) / shuffles)
    # A logarithm of a sum of draws is not linear: coverage is off by about their variance.
    curved = drawn.var(0) if name == "coverage" else 0
    assert (np.abs(ours.mean(0) - drawn.mean(0)) <= 5 * error + curved + ROUNDING).all()


# Vectors in memory, and long inputs ---------------------------------------------------------------


def layer_in_memory(tokens: int, form: Form = CAUSAL, heads: int = 4, groups: int = 2) -> Any:
    """A layer that never was in a file: what a capture holds while it runs."""
    dice = np.random.default_rng(tokens)
    layer = Layer(0, heads, groups, 8, 8, 0.3, None, False, "text", "text", "attn")
    packer = Packer()
    tensors: dict[str, Any] = {"m.L0.blocks": packer.blocks([Block(0, tokens, tokens, form)])}
    tensors |= packer.tensors
    for name, count in (("query", heads), ("key", groups), ("value", groups)):
        tensors[f"m.L0.{name}"] = dice.normal(size=(count, tokens, 8)).astype(np.float16)
    return StoredLayer(HeldTensors(tensors.__getitem__, set(tensors)), "m", layer)


def layers_in_memory(tokens: int, forms: list[Form], sinks: bool = False) -> list[StoredLayer]:
    """Layers of one tower, each with another form."""
    dice, packer, tensors = np.random.default_rng(tokens), Packer(), dict[str, Any]()
    for number, form in enumerate(forms):
        stem = f"m.L{number}"
        tensors[f"{stem}.blocks"] = packer.blocks([Block(0, tokens, tokens, form)])
        tensors[f"{stem}.sink"] = dice.normal(size=4).astype(np.float32)
        for name, count in (("query", 4), ("key", 2), ("value", 2)):
            made = dice.normal(size=(count, tokens, 8)).astype(np.float16)
            tensors[f"{stem}.{name}"] = made
    held = HeldTensors((tensors | packer.tensors).__getitem__, set(tensors | packer.tensors))
    return [
        StoredLayer(held, "m", Layer(number, 4, 2, 8, 8, 0.3, None, sinks, "text", "text", "attn"))
        for number in range(len(forms))
    ]


def token_table(tokens: int) -> TokenTable:
    dice = np.random.default_rng(tokens)
    frame = pd.DataFrame({
        "input": 0, "stream": "text", "position": np.arange(tokens),
        "id": dice.integers(0, 40, tokens), "special": np.arange(tokens) == 0,
        "text": dice.choice(["a", "b", ","], tokens),
    })  # fmt: skip
    return TokenTable(frame)


OF_TEXT = [one for one in MEASURES.values() if one.needs in ("weights", "vectors", "values")]


@pytest.mark.parametrize("form", [CAUSAL, Form(low=0, high=9), Form()])
def test_vectors_in_memory_are_measured_as_their_whole_weights_would_be(
    form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of few rows on torch, against one block with all weights of the stored layer."""
    monkeypatch.setattr("attention_atlas.measure.read_blocks.WORTH_A_GPU", 0)
    n = 60
    stored, tokens = layer_in_memory(n, form), token_table(n)
    heads = np.arange(4)
    (block,) = row_blocks(stored, 0, heads, tokens)
    whole = replace(
        block, weights=stored.weights(0, heads), seen=stored.seen(0, heads), products=None
    )
    expected = measure_blocks(OF_TEXT, [whole], np.random.default_rng(0))
    machine = Machine("cpu", largest=7 * 4 * n)
    small = replace(machine, device="numpy")
    got = [InputMeter(tokens, 0, one).input(stored, OF_TEXT, 0) for one in (machine, small)]
    query, key = (stored.vectors(what, np.arange(count), 0) for what, count in
                  (("query", 4), ("key", 2)))  # fmt: skip
    off = n * n * softmax_tolerance(query, np.repeat(key, 2, 0), 0.3)  # distances up to n, n keys
    for scores in got:
        for place, measure in enumerate(OF_TEXT):
            most = np.sqrt(n * off) if measure.name == "spread" else off
            assert scores.scores[place] == pytest.approx(
                expected.scores[place], abs=most, nan_ok=True
            ), measure.name


@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_layers_measured_together_have_the_scores_of_each_alone(
    device: str, sinks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some causal, some with a window, one with a mask of its own; in blocks of a few rows."""
    monkeypatch.setattr("attention_atlas.measure.read_blocks.WORTH_A_GPU", 0)
    n = 40
    window, hidden = Form(low=0, high=9), np.random.default_rng(0).random((1, n, n)) < 0.2
    forms = [CAUSAL, window, CAUSAL, Form(0, hidden=hidden & ~np.eye(n, dtype=bool)), CAUSAL]
    layers, tokens = layers_in_memory(n, [*forms, window], sinks), token_table(n)
    meter = InputMeter(tokens, 0, Machine(device, largest=11 * 12 * n))
    together = meter.layers(layers, OF_TEXT, [0])
    assert [len(group) for group in group_alike(layers, 0)] == [3, 2, 1]
    vectors = [
        (one.vectors("query", np.arange(4), 0), one.vectors("key", np.arange(2), 0))
        for one in layers
    ]
    off = n * n * max(softmax_tolerance(q, np.repeat(k, 2, 0), 0.3) for q, k in vectors)
    for stored, of_layer in zip(layers, together, strict=True):
        weights = stored.weights(0, np.arange(4))  # by another path
        (block,) = row_blocks(stored, 0, np.arange(4), tokens)
        whole = replace(
            block, weights=weights, seen=stored.seen(0, np.arange(4)), products=None, whole=0,
            first_seen=None,
        )  # fmt: skip
        expected = measure_blocks(OF_TEXT, [whole], np.random.default_rng([0, 0]))
        for place, measure in enumerate(OF_TEXT):
            most = np.sqrt(n * off) if measure.name == "spread" else off
            assert of_layer["scores"][0, place] == pytest.approx(
                expected.scores[place], abs=most, nan_ok=True
            ), measure.name
        assert of_layer["evidence"][0] == pytest.approx(expected.evidence, abs=off)


def test_a_shuffle_from_the_first_key_seen_is_one_among_the_keys_seen() -> None:
    """Rows of a window: every weight stays, and none goes to a key that is not seen."""
    block = random_block(N, True, 5, 0, np.float64)
    first = np.maximum(np.arange(N) - 4, 0)
    shuffled = replace(block, first_seen=first).shuffled(np.random.default_rng(1)).weights
    assert not shuffled[:, ~block.seen].any()
    assert (np.sort(shuffled, 2) == np.sort(block.weights, 2)).all()
    assert (shuffled != block.weights).any()


def test_where_a_gpu_lacks_memory_blocks_are_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    n, asked = 30, list[int]()
    layers, tokens = layers_in_memory(n, [CAUSAL, CAUSAL]), token_table(n)
    expected = InputMeter(tokens).layers(layers, OF_TEXT, [0])

    def scarce(*given: Any) -> Any:
        asked.append(given[3].largest)
        if given[3].largest > 2 * LARGEST:
            raise RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")
        yield from stacked_blocks(*given)

    monkeypatch.setattr("attention_atlas.measure.input_meter.stacked_blocks", scarce)
    got = InputMeter(tokens, 0, Machine(largest=64 * LARGEST)).layers(layers, OF_TEXT, [0])
    assert asked == [64 * LARGEST, 16 * LARGEST, 4 * LARGEST, LARGEST]
    for one, other in zip(got, expected, strict=True):
        assert np.array_equal(one["scores"], other["scores"], equal_nan=True)


def test_the_rows_of_a_long_input_are_drawn_one_of_each_part() -> None:
    computing = Computing(rows=100)
    rows = computing.some_rows(1000, 3)
    assert len(rows) == 100 and (np.diff(rows) > 0).all()
    assert (rows // 10 == np.arange(100)).all()
    assert (computing.some_rows(1000, 3) == rows).all()
    assert (computing.some_rows(100, 3) == np.arange(100)).all()
    assert len(Computing(rows=None).some_rows(1000, 3)) == 1000


def test_scores_of_drawn_rows_are_the_plain_ones_of_these_rows() -> None:
    n = 90
    stored, tokens = layer_in_memory(n), token_table(n)
    rows = Computing(rows=30).some_rows(n, 0)
    got = InputMeter(tokens, 0, Machine(rows=30)).input(stored, OF_TEXT, 0)
    weights = stored.weights(0, np.arange(4))[:, rows]
    back = weights[:, np.arange(30), np.maximum(rows - 1, 0)][:, rows > 0]
    names = [measure.name for measure in OF_TEXT]
    off = 4 * n * unit()  # sums of up to n float32 weights, twice
    assert got.scores[names.index("previous")] == pytest.approx(back.mean(1), abs=off)
    assert got.scores[names.index("importance")] == pytest.approx(weights.max((1, 2)), abs=off)


@pytest.mark.full
def test_an_atlas_says_how_many_rows_of_long_inputs_were_measured(tmp_path: Any) -> None:
    texts: list[Any] = [atlases.SENTENCE, "Yes."]
    atlas = aa.capture("builtin:gpt", texts, path=tmp_path / "rows.atlas", progress=False)
    longest = int(atlas.tokens().groupby("input").size().max())
    some = Machine(rows=longest - 2)
    drawn = measure_atlas(atlas, progress=False, machine=some)
    assert drawn.options["rows"] == longest - 2 and drawn.options["longer inputs"] == 1
    said = f"{longest - 2} rows drawn of each longer input"
    assert said in drawn.measures["entropy"]["formula"]
    assert measure_atlas(atlas, progress=False, machine=some).table.equals(drawn.table)
    whole = measure_atlas(atlas, progress=False, machine=Machine(rows=None))
    assert whole.options["rows"] is None and said not in whole.measures["entropy"]["formula"]
    assert whole.table.equals(measure_atlas(atlas, progress=False, machine=some).table)


@pytest.mark.full
def test_threads_change_no_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    atlas = aa.capture("builtin:gpt", atlases.SENTENCE, path=tmp_path / "x.atlas", progress=False)
    alone = Meter(atlas).shard(0)
    monkeypatch.setattr(Machine, "threads", lambda self, weights: 3)
    together = Meter(atlas).shard(0)
    assert list(alone.arrays) == list(together.arrays)
    for name, array in alone.arrays.items():
        assert np.array_equal(array, together.arrays[name], equal_nan=True), name


@pytest.mark.full
def test_matrix_products_start_no_threads_beside_those_of_the_measuring(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """They spun while they waited, and cost five times the processor time of the work."""
    atlas = aa.capture("builtin:gpt", "Yes, two.", path=tmp_path / "x.atlas", progress=False)
    real, threads = InputMeter.layers, set[int]()

    def watched(self: InputMeter, *asked: Any) -> Any:
        libraries = threadpool_info()
        threads.update(one["num_threads"] for one in libraries if one["user_api"] == "blas")
        return real(self, *asked)

    monkeypatch.setattr(InputMeter, "layers", watched)
    with threadpool_limits(2, "blas"):
        Meter(atlas).shard(0)
    assert threads == {1}
