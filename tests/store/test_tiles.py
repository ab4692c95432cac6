"""Are the tiles of a head those of its plain weights, at every level, and do masses add up?"""

import tracemalloc
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_atlas.names.errors import PickError
from attention_atlas.names.wanted import UnwantedError, while_wanted
from attention_atlas.store import coarse_levels, cores
from attention_atlas.store.computed_weights import ComputedWeights
from attention_atlas.store.files import write_tensors
from attention_atlas.store.form import CAUSAL
from attention_atlas.store.head_shares import HeadShares, LayerGiven
from attention_atlas.store.head_weights import ROWS, GivenWeights
from attention_atlas.store.manifest import Layer, Shard
from attention_atlas.store.output import LayerProjection
from attention_atlas.store.pooling import FAINTEST_CELL
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.shard import Block, Packer
from attention_atlas.store.tiles import TILE, Pyramid
from tests.store.test_rows import CASES, HEADS, Made, manifest, write
from tests.tolerance import STORED, softmax_tolerance, unit

Floats = npt.NDArray[np.float64]
# One softmax, three of odd sizes in one input, more keys than queries, rows that see nothing.
INPUTS = [[(530, 530)], [(130, 90), (300, 260), (41, 41)], [(300, 590)], [(590, 300)]]
PICKED = [0, HEADS - 1]
# Each sort of mask and of bias, a soft cap, a sink and stored weights; the other pairs are full.
OFTEN = {2, 4, 5, 9, 10}
LAYERS = [
    pytest.param(layer, marks=() if layer in OFTEN else pytest.mark.full)
    for layer in range(len(CASES))
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return write(tmp_path_factory.mktemp("tiles"), CASES, INPUTS)


def whole_level(pyramid: Pyramid, level: int) -> tuple[Floats, Floats]:
    """All cells of a level, put together from its tiles: strongest and mass."""
    down, across = (-(-size // (TILE << level)) for size in (pyramid.n, pyramid.m))
    tiles = [[pyramid.tile(level, row, column) for column in range(across)] for row in range(down)]
    cells = [
        np.block([[getattr(tile, what) for tile in row] for row in tiles]).astype(float)
        for what in ("strongest", "mass")
    ]
    return cells[0], cells[1]


def pooled_plainly(weights: Floats, level: int) -> tuple[Floats, Floats]:
    """Strongest and mass of every cell, written out: one reshape over zeros beyond the input."""
    side = 2**level
    tiles = [-(-size // (TILE * side)) for size in weights.shape]
    padded = np.zeros([count * TILE * side for count in tiles])
    padded[: weights.shape[0], : weights.shape[1]] = weights
    cut = padded.reshape(tiles[0] * TILE, side, tiles[1] * TILE, side)
    return cut.max(axis=(1, 3)), cut.sum(axis=(1, 3))


def mass_tolerance(atol: float, level: int) -> float:
    """A cell's mass is a sum of 4^level weights, each off by atol, added in float32."""
    count = 4.0**level
    return count * (atol + count * unit())


@pytest.mark.parametrize("layer", LAYERS)
def test_tiles_are_those_of_the_plain_softmax_at_every_level(made: Made, layer: int) -> None:
    for number, head in product(range(len(INPUTS)), PICKED):
        pyramid = made.atlas.pyramid(number, f"L{layer}H{head}")
        weights = made.expected[layer, number][head]
        for level in range(pyramid.top + 1):
            strongest, mass = whole_level(pyramid, level)
            expected = pooled_plainly(weights, level)
            np.testing.assert_allclose(strongest, expected[0], rtol=0, atol=made.atol)
            np.testing.assert_allclose(
                mass, expected[1], rtol=0, atol=mass_tolerance(made.atol, level)
            )


@pytest.mark.parametrize("layer", LAYERS)
def test_the_exact_overview_has_the_sums_of_all_weights(made: Made, layer: int) -> None:
    for number, head in product(range(len(INPUTS)), PICKED):
        pyramid = made.atlas.pyramid(number, f"L{layer}H{head}")
        weights = made.expected[layer, number][head]
        overview = pyramid.overview()
        rows = weights.shape[0] * made.atol
        np.testing.assert_allclose(overview.column_mass, weights.sum(0), rtol=0, atol=2 * rows)
        for level in range(pyramid.top + 1):
            strongest, mass = pooled_plainly(weights, level)
            # Every cell is off by at most its tolerance; cells within it may fall on either side.
            slack = mass_tolerance(made.atol, level)
            near = np.abs(mass - FAINTEST_CELL * 4**level) <= slack
            allowed = (weights.size * made.atol + mass[near].sum()) / weights.sum()
            drawn = mass[mass >= FAINTEST_CELL * 4**level].sum() / weights.sum()
            assert overview.drawn[level] == pytest.approx(drawn, abs=2 * allowed)
            kept = strongest.sum() / weights.sum()
            assert overview.kept[level] == pytest.approx(kept, abs=2 * allowed)


@pytest.mark.parametrize("layer", LAYERS)
def test_the_first_overview_is_made_of_every_16th_row(made: Made, layer: int) -> None:
    for number in range(len(INPUTS)):
        pyramid = made.atlas.pyramid(number, f"L{layer}H0")
        weights = made.expected[layer, number][0]
        overview = pyramid.sampled
        side = 2**overview.level
        assert overview.step == min(16, side)
        columns = np.arange(0, weights.shape[1], side)
        strongest, mass = [], []
        for cell in range(len(overview.mass)):
            own = weights[cell * side : (cell + 1) * side]
            read = own[:: overview.step]
            strongest.append(np.maximum.reduceat(read.max(0), columns))
            mass.append(np.add.reduceat(read.sum(0), columns) * len(own) / len(read))
        np.testing.assert_allclose(overview.strongest, strongest, atol=made.atol)
        slack = mass_tolerance(made.atol, overview.level)
        np.testing.assert_allclose(overview.mass, mass, atol=slack)


@settings(max_examples=40)
@given(layer=st.integers(0, len(CASES) - 1), number=st.integers(0, len(INPUTS) - 1),
       head=st.integers(0, HEADS - 1), data=st.data())  # fmt: skip
def test_masses_of_a_level_add_up_and_a_strongest_is_the_largest_of_the_finer_level(
    made: Made, layer: int, number: int, head: int, data: st.DataObject
) -> None:
    pyramid = made.atlas.pyramid(number, f"L{layer}H{head}")
    level = data.draw(st.integers(0, pyramid.top))
    strongest, mass = whole_level(pyramid, level)
    rows = made.expected[layer, number][head].sum(axis=1)
    side = 2**level
    sums = np.add.reduceat(rows, np.arange(0, len(rows), side))
    slack = side * pyramid.m * made.atol + pyramid.m * side * unit()
    np.testing.assert_allclose(mass.sum(1)[: len(sums)], sums, rtol=0, atol=slack)
    if level:
        finer, lighter = whole_level(pyramid, level - 1)
        coarse_max, _ = pooled_plainly(finer, 1)
        _, coarse_sum = pooled_plainly(lighter, 1)
        size = strongest.shape
        np.testing.assert_allclose(strongest, coarse_max[: size[0], : size[1]], atol=2 * made.atol)
        slack = 2 * mass_tolerance(made.atol, level)
        np.testing.assert_allclose(mass, coarse_sum[: size[0], : size[1]], rtol=0, atol=slack)


# Keys taken out ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", LAYERS)
def test_rows_without_some_keys_are_softmaxes_over_the_others(made: Made, layer: int) -> None:
    gone = [0, 7, 64, 255]
    for number in range(len(INPUTS)):
        weights = made.expected[layer, number][0].copy()
        outside = 1 - weights.sum(1) if CASES[layer].sink else np.zeros(len(weights))
        weights[:, gone] = 0
        left = weights.sum(1) + outside
        expected = weights / np.where(left > 0, left, 1)[:, None]
        # The weights of the rest are off by as much as all were, relative to what is left.
        atol = made.atol / left[left > 0].min()
        pyramid = made.atlas.pyramid(number, f"L{layer}H0", gone)
        for level in range(pyramid.top + 1):
            strongest, mass = whole_level(pyramid, level)
            plainly = pooled_plainly(expected, level)
            np.testing.assert_allclose(strongest, plainly[0], rtol=0, atol=atol)
            np.testing.assert_allclose(mass, plainly[1], rtol=0, atol=mass_tolerance(atol, level))


N, WIDTH = 2048, 64


def long_atlas(folder: Path, n: int = N, sink: float = 0.0) -> StoredAtlas:
    """A causal head of random float16 vectors, whose first key is looked at by `sink` more."""
    dice = np.random.default_rng(1)
    query, key = dice.normal(size=(2, 1, n, WIDTH)).astype(np.float16)
    query[:, :, 0], key[:, :, 0] = 8, 0
    key[:, 0, 0] = sink
    return causal_atlas(folder, {"text.L0.query": query, "text.L0.key": key}, n)


def causal_atlas(folder: Path, tensors: dict[str, Any], n: int) -> StoredAtlas:
    """One input of one causal head."""
    tensors |= {"text.L0.blocks": Packer().blocks([Block(0, n, n, CAUSAL)])}
    path = folder / "0.safetensors"
    checksum = write_tensors(path, tensors)
    layer = Layer(0, 1, 1, WIDTH, WIDTH, WIDTH**-0.5, None, False, "text", "text", "")
    shard = Shard(path.name, 1, path.stat().st_size, checksum)
    return StoredAtlas(folder, manifest((layer,), [shard], 1))


def test_with_a_stored_log_sum_exp_a_tile_needs_no_other_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the model's own; a weight is off by a factor of what rounding does to its logit."""
    dice = np.random.default_rng(2)
    query, key = dice.normal(size=(2, 1, N, WIDTH))
    logits = query[0] @ key[0].T * WIDTH**-0.5
    logits[np.triu_indices(N, 1)] = -np.inf
    sums = np.log(np.exp(logits).sum(1))
    stored = {"text.L0.query": query.astype(np.float16), "text.L0.key": key.astype(np.float16)}
    atlas = causal_atlas(tmp_path, stored | {"text.L0.lse": sums[None].astype(np.float32)}, N)
    rounded = atlas.queries("L0H0", 0).astype(float) @ atlas.keys("L0H0", 0).T * WIDTH**-0.5
    monkeypatch.setattr(ComputedWeights, "_log_sums", None)  # nothing calls it
    off = np.abs(rounded - logits)[np.tril_indices(N)].max()
    # float32: the dot product, then lse and its difference from the logit, then exp.
    products = np.abs(query[0]).max() * np.abs(key[0]).max() * WIDTH * WIDTH**-0.5
    off += (WIDTH + 8) * unit() * (products + np.abs(sums).max())
    for row, column in ((0, 0), (7, 0), (7, 7)):
        tile = atlas.tile(0, "L0H0", 0, row, column)
        place = slice(row * TILE, (row + 1) * TILE), slice(column * TILE, (column + 1) * TILE)
        expected = np.exp(logits - sums[:, None])[place]
        assert (np.abs(tile.strongest - expected) <= expected * np.expm1(off)).all()


def test_tiles_of_a_captured_model_are_its_weights(tmp_path: Path) -> None:
    """A rotary model over 2,304 tokens; what is stored is rounded, the log-sum-exp is its own."""
    import torch
    import transformers

    import attention_atlas as aa

    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=4096,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LlamaModel(config).eval()
    ids = torch.randint(0, 50, (1, 2304))
    atlas = aa.capture(
        model, [{"input_ids": ids}], path=tmp_path / "x.atlas", device="cpu", progress=False
    )
    overview = atlas.overview(0, "L0H1")
    assert overview.total == pytest.approx(2304, rel=STORED)
    weights = atlas.weights(0, "L0H1").astype(float)
    strongest, mass = whole_level(atlas.pyramid(0, "L0H1"), 2)
    expected = pooled_plainly(weights, 2)
    np.testing.assert_allclose(strongest, expected[0], rtol=0, atol=STORED)
    np.testing.assert_allclose(mass, expected[1], rtol=0, atol=mass_tolerance(STORED, 2))


def exactly(atlas: StoredAtlas, first: int = 0) -> Floats:
    """The weights in float64, over the keys from `first` on."""
    query, key = (part("L0H0", 0).astype(float) for part in (atlas.queries, atlas.keys))
    logits = query @ key[first:].T * WIDTH**-0.5
    logits[np.arange(N)[:, None] < np.arange(first, N)] = -np.inf
    logits -= np.maximum(logits.max(1, keepdims=True), -1e30)
    grown = np.exp(logits)
    total = grown.sum(1, keepdims=True)
    return np.pad(grown / np.where(total > 0, total, 1), ((0, 0), (first, 0)))


@pytest.fixture(scope="module")
def sunk(tmp_path_factory: pytest.TempPathFactory) -> StoredAtlas:
    """The first key takes all but about 1 / 10,000 of the attention."""
    return long_atlas(tmp_path_factory.mktemp("sunk"), sink=17.0)


def test_tiles_of_2048_tokens_are_the_weights_that_the_atlas_reads(sunk: StoredAtlas) -> None:
    weights = sunk.weights(0, "L0H0").astype(float)
    query, key = sunk.queries("L0H0", 0), sunk.keys("L0H0", 0)
    atol = softmax_tolerance(query, key, WIDTH**-0.5)
    for level in range(sunk.pyramid(0, "L0H0").top + 1):
        strongest, mass = whole_level(sunk.pyramid(0, "L0H0"), level)
        expected = pooled_plainly(weights, level)
        np.testing.assert_allclose(strongest, expected[0], rtol=0, atol=atol)
        np.testing.assert_allclose(mass, expected[1], rtol=0, atol=mass_tolerance(atol, level))


def test_what_a_sink_leaves_over_is_exact_however_little_it_is(sunk: StoredAtlas) -> None:
    """1 − 0.9999 has lost its digits; a softmax over the other keys has not."""
    plain = exactly(sunk)
    assert plain[N // 2 :, 0].mean() > 0.999
    overview = sunk.overview(0, "L0H0", sampled=True)
    assert overview.sinks() == [0]
    strongest, _ = whole_level(sunk.pyramid(0, "L0H0", "sinks"), 0)
    query, key = sunk.queries("L0H0", 0), sunk.keys("L0H0", 0)
    atol = softmax_tolerance(query, key[1:], WIDTH**-0.5, sides=1)
    np.testing.assert_allclose(strongest, exactly(sunk, first=1), rtol=0, atol=atol)
    assert not strongest[0].any()  # the first row had no other key


def test_a_sink_has_a_twentieth_of_all_and_five_times_the_median(sunk: StoredAtlas) -> None:
    pyramid = sunk.pyramid(0, "L0H0")
    assert pyramid.overview().sinks() == [0]
    even = np.ones(1000)
    for lifted, expected in ((51.0, []), (53.0, [3])):  # 5 % of 999 + x is x = 52.6
        mass = even.copy()
        mass[3] = lifted
        assert replace(pyramid.sampled, column_mass=mass).sinks() == expected
    for lifted, expected in ((4.9, []), (5.1, [0])):  # of the median key's attention
        few = np.array([lifted, 1, 1, 1, 1, 1, 1, 1, 1, 1])
        assert replace(pyramid.sampled, column_mass=few).sinks() == expected


# Memory, stopping, refusals ----------------------------------------------------------------------


def test_a_long_input_never_has_all_pairs_in_memory(tmp_path: Path) -> None:
    n = 8192
    atlas = long_atlas(tmp_path, n)
    atlas.tile(0, "L0H0", 0, 0, 0)  # the file is opened and checked
    atlas._pyramids = type(atlas._pyramids)()
    tracemalloc.start()
    try:
        assert atlas.overview(0, "L0H0").total == pytest.approx(n)
        atlas.tile(0, "L0H0", 2, 3, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    kept = atlas.pyramid(0, "L0H0").bytes
    pieces = 8 * 256 * 1024 * 4 * cores.cores()
    assert peak < kept + pieces + 4 * n * WIDTH * 4, f"{peak / 2**20:.0f} MiB"
    assert peak < n * n * 4 / 4


def test_an_overview_that_nobody_wants_stops_and_resumes_where_it_was(
    sunk: StoredAtlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "cores", lambda: 1)
    sunk._pyramids = type(sunk._pyramids)()
    pyramid, read = sunk.pyramid(0, "L0H0"), []
    plain = coarse_levels.CoarseLevels._read

    def told(self: coarse_levels.CoarseLevels, band: int) -> None:
        read.append(band)
        plain(self, band)

    monkeypatch.setattr(coarse_levels.CoarseLevels, "_read", told)
    with while_wanted(lambda: len(read) < 3), pytest.raises(UnwantedError):
        pyramid.overview()
    assert len(read) == 3
    pyramid.overview()
    assert sorted(read) == list(range(N // ROWS))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ((4, 0, 0), "no level 4; this head has 0 to 3"),
        ((0, 8, 0), "no tile 8, 0; level 0 has 8 × 8 tiles"),
        ((0, -1, 0), "no tile -1, 0"),
        ((0, 0, 0, [N]), f"keys go from 0 to {N - 1}"),
        ((0, 0, 0, range(65)), "at most 64"),
        ((0, 0, 0, "first"), "'first' names no keys; give their positions, or sinks"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(
    sunk: StoredAtlas, asked: Any, sentence: str
) -> None:
    with pytest.raises(PickError, match=sentence):
        sunk.tile(0, "L0H0", *asked)


def test_tiles_of_contributions_keep_their_signs_at_every_level() -> None:
    """Two heads of one group, causal, 600 tokens: more than a tile, a band and a product each."""
    dice, n, width = np.random.default_rng(0), 600, 5
    weights = np.exp(dice.normal(0, 3, (2, n, n))) * np.tri(n)
    weights = (weights / weights.sum(2, keepdims=True)).astype(np.float32)
    values = dice.normal(size=(1, n, width)).astype(np.float32)
    matrix, bias = dice.normal(size=(2, width, 7)), dice.normal(size=7)
    moved = np.einsum("hij,je->hie", weights.astype(float), values[0].astype(float))
    output = np.einsum("hie,hed->id", moved, matrix) + bias
    back = np.einsum("id,hed->hie", output, matrix) / (output**2).sum(1)[:, None]
    expected = 2 * weights[1] * (back[1] @ values[0].T.astype(float))
    projection = LayerProjection(matrix.astype(np.float32), bias.astype(np.float32))
    heads = [GivenWeights(head) for head in weights]
    given_rows = LayerGiven(heads, values, projection)
    pyramid = Pyramid(HeadShares(heads[1], given_rows, 1, values[0]), signed=True)
    # Dot products of two heads' values, once there and once back, over the smallest output.
    terms = np.abs(moved).sum() / n * np.abs(matrix).sum() ** 2 * np.abs(values).max()
    off = 2 * 2 * width * unit() * terms / (output**2).sum(1).min()
    for level in range(pyramid.top + 1):
        strongest, mass = whole_level(pyramid, level)
        high, _ = pooled_plainly(np.maximum(expected, 0), level)
        low, _ = pooled_plainly(np.maximum(-expected, 0), level)
        _, sizes = pooled_plainly(np.abs(expected), level)
        np.testing.assert_allclose(np.abs(strongest), np.maximum(high, low), rtol=0, atol=off)
        clear = np.abs(high - low) > 2 * off
        assert (np.sign(strongest) == np.sign(high - low))[clear].all() and clear.any()
        np.testing.assert_allclose(mass, sizes, rtol=1e-4, atol=mass_tolerance(off, level))
    exact = pyramid.overview()
    np.testing.assert_allclose(exact.column_mass, np.abs(expected).sum(0), rtol=1e-4, atol=n * off)
    rows = expected[::4]  # 600 tokens: cells of 4 × 4, of which one row in four is read
    high = np.stack([rows[:, at : at + 4].max(1) for at in range(0, n, 4)], 1)
    low = np.stack([rows[:, at : at + 4].min(1) for at in range(0, n, 4)], 1)
    sampled = np.where(high >= -low, high, low)
    np.testing.assert_allclose(pyramid.sampled.strongest, sampled, rtol=0, atol=off)
