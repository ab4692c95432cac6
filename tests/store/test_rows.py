"""Are the weights that are read, in any heads, rows and columns, those of a plain softmax?"""

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.names.errors import PickError, StoreError
from attention_atlas.store import rows as store_rows
from attention_atlas.store import tensor_file
from attention_atlas.store.files import write_tensors
from attention_atlas.store.form import compress
from attention_atlas.store.manifest import Layer, LayerReceipt, Manifest, Receipt, Shard, Tower
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.shard import Block, HeldTensors, Packer, ShardFile
from tests.tolerance import softmax_tolerance

Floats = npt.NDArray[np.float64]
HEADS, WIDTH = 6, 4
# The blocks (n, m) of each input; one input is cut into windows, and none need be square.
INPUTS = [[(7, 7)], [(3, 4), (5, 2), (2, 2)], [(1, 1)], [(9, 5)]]
SCALE = WIDTH**-0.5


@dataclass(frozen=True)
class Case:
    """One layer: how its heads share keys, what is seen, what is added, what caps and drains."""

    groups: int = HEADS
    seen: str = "all"  # "all", "causal", "window", "mask" (of each head)
    bias: str = ""  # "", "columns", "offsets", "dense"
    softcap: float | None = None
    sink: bool = False
    kept: bool = False  # weights are stored, vectors are not


CASES = [
    Case(), Case(2, "causal"), Case(3, "window"), Case(1, "mask"), Case(6, "all", "columns"),
    Case(2, "causal", "offsets"), Case(3, "mask", "dense"), Case(2, "window", softcap=2.0),
    Case(3, "causal", sink=True), Case(2, "mask", "dense", 1.5, True), Case(kept=True),
]  # fmt: skip


@dataclass(frozen=True)
class Made:
    atlas: StoredAtlas
    expected: dict[tuple[int, int], Floats]  # (layer, input) → (H, N, M)
    atol: float


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return write(tmp_path_factory.mktemp("rows"), CASES, INPUTS)


def write(folder: Path, cases: list[Case], inputs: list[list[tuple[int, int]]]) -> Made:
    """Two shards of random vectors, and the weights by a softmax in float64 of our own."""
    dice = np.random.default_rng(0)
    expected: dict[tuple[int, int], Floats] = {}
    shards, atol = [], 0.0
    for number, mine in enumerate((range(2), range(2, len(inputs)))):
        packer = Packer()
        tensors: dict[str, Any] = {}
        for layer, case in enumerate(cases):
            stem, blocks, parts = f"text.L{layer}", [], []
            sink = dice.normal(size=HEADS).astype(np.float32) if case.sink else None
            for i in mine:
                n, m = np.sum(inputs[i], axis=0)
                whole, n0, m0 = np.zeros((HEADS, n, m)), 0, 0
                for rows, columns in inputs[i]:
                    query = dice.normal(size=(HEADS, rows, WIDTH)).astype(np.float32)
                    key = dice.normal(size=(case.groups, columns, WIDTH)).astype(np.float32)
                    seen, bias = terms(case, rows, columns, dice)
                    weights = softmax(query, key, seen, bias, sink, case.softcap)
                    most = max(abs(bias).max(), 0 if sink is None else abs(sink).max())
                    atol = max(atol, softmax_tolerance(query, spread(key), SCALE, most, sides=1))
                    whole[:, n0 : n0 + rows, m0 : m0 + columns] = weights
                    form = compress(np.where(seen, bias, -np.inf).astype(np.float32))
                    blocks.append(Block(i, rows, columns, form))
                    parts.append((query, key, weights.astype(np.float32)))
                    n0, m0 = n0 + rows, m0 + columns
                expected[layer, i] = whole
            queries, keys, alone = zip(*parts, strict=True)
            tensors[f"{stem}.blocks"] = packer.blocks(blocks)
            if case.kept:
                flat = [one.reshape(HEADS, -1) for one in alone]
                tensors[f"{stem}.weights"] = np.concatenate(flat, axis=1)
            else:
                tensors[f"{stem}.query"] = np.concatenate(queries, axis=1)
                tensors[f"{stem}.key"] = np.concatenate(keys, axis=1)
            if sink is not None:
                tensors[f"{stem}.sink"] = sink
        path = folder / f"{number}.safetensors"
        checksum = write_tensors(path, tensors | packer.tensors)
        shards.append(Shard(path.name, len(mine), path.stat().st_size, checksum))
    layers = tuple(
        Layer(layer, HEADS, case.groups, WIDTH, WIDTH, SCALE, case.softcap, case.sink, "text",
              "text", "")
        for layer, case in enumerate(cases)
    )  # fmt: skip
    about = manifest(layers, shards, len(inputs))
    return Made(StoredAtlas(folder, about), expected, atol)


def manifest(layers: tuple[Layer, ...], shards: list[Shard], inputs: int) -> Manifest:
    receipt = Receipt("named", "float32", 1e-5, (LayerReceipt("text", 0, 0, 0, 0, True),))
    return Manifest(
        "random", None, "Random", (Tower("text", "self", len(layers), layers),), ("text",), inputs,
        0, ("query", "key"), receipt, tuple(shards), {},
    )  # fmt: skip


def terms(case: Case, n: int, m: int, dice: np.random.Generator) -> tuple[Any, Any]:
    """What is seen and what is added, (H, n, m), written out whole."""
    i, j = np.indices((n, m))
    seen: dict[str, Callable[[], Any]] = {
        "all": lambda: np.ones((n, m), bool), "causal": lambda: i >= j,
        "window": lambda: (i >= j) & (i - j <= 2),
        "mask": lambda: dice.random((HEADS, n, m), np.float32) < 0.6,
    }  # fmt: skip

    def values(*shape: int) -> Any:
        return dice.normal(size=(HEADS, *shape)).astype(np.float32)

    bias: dict[str, Callable[[], Any]] = {
        "": lambda: np.zeros((HEADS, n, m)), "columns": lambda: np.repeat(values(1, m), n, axis=1),
        "offsets": lambda: values(n + m)[:, i - j + m - 1], "dense": lambda: values(n, m),
    }  # fmt: skip
    return np.broadcast_to(seen[case.seen](), (HEADS, n, m)), bias[case.bias]()


def softmax(query: Any, key: Any, seen: Any, bias: Any, sink: Any, softcap: float | None) -> Floats:
    """Returns the weights (H, n, m) in float64."""
    logits = query.astype(float) @ spread(key).astype(float).swapaxes(-1, -2) * SCALE
    if softcap is not None:
        logits = softcap * np.tanh(logits / softcap)
    logits = np.where(seen, logits + bias, -np.inf)
    logits = np.where(seen.any(-1, keepdims=True), logits, 0)
    grown = np.exp(logits)
    total = grown.sum(-1, keepdims=True)
    total = total if sink is None else total + np.exp(sink.astype(float))[:, None, None]
    return np.asarray(grown / total)


def spread(key: Any) -> Any:
    """Returns the keys of each head, (H, m, D)."""
    return np.repeat(key, HEADS // len(key), axis=0)


def some(size: int) -> st.SearchStrategy[list[int] | None]:
    return st.none() | st.lists(st.integers(-size, size - 1), max_size=size + 2)


@given(data=st.data())
def test_any_heads_rows_and_columns_are_those_of_the_whole_softmax(
    made: Made, data: st.DataObject
) -> None:
    layer = data.draw(st.integers(0, len(CASES) - 1))
    number = data.draw(st.integers(0, len(INPUTS) - 1))
    whole = made.expected[layer, number]
    asked = [data.draw(some(size)) for size in whole.shape]
    with pytest.MonkeyPatch.context() as patch:  # so few at once that it is read in many chunks
        patch.setattr(store_rows, "LARGEST", data.draw(st.sampled_from([4_000_000, 60, 5])))
        found = made.atlas.rows(number, layer, "text", *asked)
    indexes = (range(n) if one is None else one for one, n in zip(asked, whole.shape, strict=True))
    expected = whole[np.ix_(*(np.array(one, dtype=int) for one in indexes))]
    assert found.dtype == np.float32 and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=made.atol)


@pytest.mark.parametrize("layer", range(len(CASES)))
def test_other_readers_give_the_same(made: Made, layer: int) -> None:
    atlas = made.atlas
    for number in range(len(INPUTS)):
        whole = atlas.rows(number, layer)
        assert whole.shape == atlas.shape(number, layer)
        np.testing.assert_array_equal(atlas.layer_weights(number, layer), whole)
        head = atlas.weights(number, f"L{layer}H4", rows=[-1, 0])
        np.testing.assert_allclose(head, whole[4, [-1, 0]], rtol=0, atol=made.atol)
        assert not whole[~may_see(atlas, layer, number)].any()
    for shard in range(2):
        tower = atlas.towers[0]
        held = atlas.held_layer(shard, tower, tower.layers[layer])
        for number in held.inputs():
            weights = held.weights(number, np.arange(HEADS))
            np.testing.assert_array_equal(weights, atlas.rows(number, layer))


def may_see(atlas: StoredAtlas, layer: int, number: int) -> npt.NDArray[np.bool_]:
    seen = np.stack([atlas.terms(f"L{layer}H{head}", number).seen for head in range(HEADS)])
    return seen | ~seen.any(-1, keepdims=True)  # a row that sees nothing is even


@pytest.mark.parametrize("asked", [{"heads": [6]}, {"rows": [7]}, {"columns": [-8]}])
def test_what_is_not_there_is_refused_in_a_sentence(made: Made, asked: dict[str, Any]) -> None:
    (what,) = asked
    with pytest.raises(PickError, match=f"{what} go from 0 to"):
        made.atlas.rows(0, 0, **asked)


def test_a_pass_reads_each_tensor_once(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    tensor = ShardFile.tensor

    def told(self: ShardFile, name: str) -> Any:
        read.append(name)
        return tensor(self, name)

    monkeypatch.setattr(ShardFile, "tensor", told)
    monkeypatch.setattr(ShardFile, "part", None)
    tower = made.atlas.towers[0]
    for layer in tower.layers:
        read.clear()
        held = made.atlas.held_layer(1, tower, layer)
        for number in held.inputs():
            held.weights(number, np.arange(HEADS))
            held.seen(number, np.arange(HEADS))
        assert len(read) == len(set(read))


# Long inputs -------------------------------------------------------------------------------------

LONG = 4_000


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> StoredAtlas:
    """One input of many tokens, with a mask of bits and a bias by offset."""
    folder, dice = tmp_path_factory.mktemp("long"), np.random.default_rng(0)
    width, heads = 64, 12
    tensors: dict[str, Any] = {
        f"text.L0.{what}": dice.normal(size=(heads, LONG, width)).astype(np.float16)
        for what in ("query", "key")
    }
    tensors["mask.0"] = dice.integers(0, 256, (1, LONG, LONG // 8), np.uint8)
    tensors["bias.0.offsets"] = dice.normal(size=(heads, 2 * LONG - 1)).astype(np.float32)
    tensors["text.L0.blocks"] = np.array([[0, LONG, LONG, 0, 2**31 - 1, 0, 0]], np.int32)
    path = folder / "0.safetensors"
    checksum = write_tensors(path, tensors)
    layer = Layer(0, heads, heads, width, width, width**-0.5, None, False, "text", "text", "")
    shard = Shard(path.name, 1, path.stat().st_size, checksum)
    return StoredAtlas(folder, manifest((layer,), [shard], 1))


@pytest.mark.parametrize(
    ("heads", "rows", "columns", "most"),
    [
        (None, [7], None, 48),  # less than all pairs of one head, which are 61 MiB
        ([3], [7, 3999], None, 8),
        ([3], None, [0], 160),  # every row is made, a few million weights at a time
    ],
)
def test_a_few_rows_of_a_long_input_never_cost_all_pairs(
    long: StoredAtlas, heads: Sequence[int] | None, rows: Sequence[int] | None,
    columns: Sequence[int] | None, most: int,
) -> None:  # fmt: skip
    long.rows(0, 0, heads=[0], rows=[0])  # the file is opened and checked
    tracemalloc.start()
    try:
        found = long.rows(0, 0, None, heads, rows, columns)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.size and peak < most * 2**20, f"{peak / 2**20:.0f} MiB"


@pytest.mark.parametrize("worth", [1, 2**30])
def test_rows_are_filled_in_as_they_would_be_indexed(
    worth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file, run by run or cut from the whole tensor, and from memory; into float32 too."""
    monkeypatch.setattr(tensor_file, "WORTH_A_READ", worth)
    whole = np.random.default_rng(0).normal(size=(5, 40, 3)).astype(np.float16)
    write_tensors(tmp_path / "x.safetensors", {"q": whole})
    file = tensor_file.TensorFile(tmp_path / "x.safetensors")
    held = HeldTensors(lambda name: whole, {"q"})
    heads = np.array([3, 0, 4])
    for rows in (np.arange(7, 19), np.array([0, 1, 2, 30, 31, 39]), np.array([9, 2, 3, 0])):
        for source in (file, held):
            for kind in (np.float16, np.float32):
                target = np.zeros((3, len(rows) + 5, 3), kind)
                source.fill("q", heads, rows, target[:, 2 : 2 + len(rows)])
                assert (target[:, 2 : 2 + len(rows)] == whole[heads][:, rows]).all()
                assert not target[:, :2].any() and not target[:, 2 + len(rows) :].any()
    with pytest.raises(StoreError, match="shorter"):
        file.fill("q", np.array([5]), np.arange(20), np.zeros((1, 20, 3), np.float16))
