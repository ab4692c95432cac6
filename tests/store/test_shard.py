"""Do the blocks of a shard come back as they were packed, each mask kept once?"""

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.store.form import CAUSAL, FULL, UNBOUNDED, Form, compress
from attention_atlas.store.shard import Block, HeldTensors, Packer, unpack_form


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    n, m, heads = draw(st.integers(1, 20)), draw(st.integers(1, 20)), draw(st.integers(1, 3))
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    offset = np.arange(n)[:, None] - np.arange(m)
    seen = {
        "all": np.ones((1, n, m), bool),
        "causal": (offset >= 0)[None],
        "window": (np.abs(offset) <= 2)[None],
        "any": dice.random((heads, n, m)) < 0.5,
    }[draw(st.sampled_from(["all", "causal", "window", "any"]))]
    bias = {
        "none": np.zeros((1, n, m)),
        "columns": dice.normal(size=(heads, 1, m)),
        "offsets": dice.normal(size=(heads, n + m))[:, offset + m - 1],
        "dense": dice.normal(size=(heads, n, m)),
    }[draw(st.sampled_from(["none", "columns", "offsets", "dense"]))]
    form = compress(np.where(seen, bias, -np.inf).astype(np.float32))
    return Block(draw(st.integers(0, 1000)), n, m, form)


def same(a: Form, b: Form) -> bool:
    return (
        (a.low, a.high, a.bias_kind) == (b.low, b.high, b.bias_kind)
        and equal(a.hidden, b.hidden)
        and equal(a.bias, b.bias)
    )


def equal(a: npt.NDArray[Any] | None, b: npt.NDArray[Any] | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and np.array_equal(a, b)


@given(st.lists(blocks(), max_size=5))
def test_what_is_packed_comes_back(given: list[Block]) -> None:
    packer = Packer()
    table = packer.blocks(given)
    assert table.dtype == np.int32 and table.shape == (len(given), 7)
    for row, block in zip(table, given, strict=True):
        assert row[:3].tolist() == [block.input, block.n, block.m]
        heads, rows = np.arange(_heads(block.form)), np.arange(block.n)
        assert same(unpack_form(row, held(packer), heads, rows), block.form)


def held(packer: Packer) -> HeldTensors:
    return HeldTensors(packer.tensors.__getitem__, set(packer.tensors))


def _heads(form: Form) -> int:
    return max([1, *(len(one) for one in (form.hidden, form.bias) if one is not None)])


@given(blocks(), st.data())
def test_some_heads_and_rows_are_those_of_the_whole(block: Block, data: st.DataObject) -> None:
    n, m, count = block.n, block.m, _heads(block.form)
    rows, heads = (
        np.array(data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=4)))
        for size in (n, count)
    )
    packer = Packer()
    (row,) = packer.blocks([block])
    some = unpack_form(row, held(packer), heads, rows)
    for part, whole in (
        (some.visible(len(rows), m), block.form.visible(n, m)),
        (some.added(len(rows), m), block.form.added(n, m)),
    ):
        if part is None or whole is None:
            assert part is whole
        else:
            every = np.broadcast_to(whole, (count, n, m))[np.ix_(heads, rows)]
            assert (np.broadcast_to(part, every.shape) == every).all()


def test_plain_forms_need_no_tensor() -> None:
    packer = Packer()
    table = packer.blocks([Block(0, 3, 3, FULL), Block(1, 2, 2, CAUSAL)])
    assert table.tolist() == [
        [0, 3, 3, -UNBOUNDED, UNBOUNDED, -1, -1],
        [1, 2, 2, 0, UNBOUNDED, -1, -1],
    ]
    assert packer.tensors == {}


def test_layers_with_the_same_mask_share_it() -> None:
    packer = Packer()
    hidden = np.eye(4, dtype=bool)[None]
    first = packer.blocks([Block(0, 4, 4, Form(hidden=hidden))])
    second = packer.blocks([Block(0, 4, 4, Form(hidden=hidden.copy()))])
    assert first.tolist() == second.tolist()
    assert list(packer.tensors) == ["mask.0"]


def test_a_bias_is_shared_only_with_one_of_its_kind() -> None:
    packer = Packer()
    table = packer.blocks(
        [
            Block(0, 1, 2, Form(bias_kind=kind, bias=np.ones((1, 2), np.float32)))
            for kind in ("columns", "offsets", "columns")
        ]
    )
    assert table[:, 6].tolist() == [0, 1, 0]
    assert sorted(packer.tensors) == ["bias.0.columns", "bias.1.offsets"]


def test_a_mask_takes_one_bit_a_pair() -> None:
    packer = Packer()
    packer.blocks([Block(0, 16, 16, Form(hidden=np.eye(16, dtype=bool)[None]))])
    assert packer.tensors["mask.0"].nbytes == 16 * 16 // 8
