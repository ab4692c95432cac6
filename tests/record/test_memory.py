"""What does not fit into memory runs in halves; one long text does not make the others long."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaModel

import attention_atlas as aa
from attention_atlas.models.encode import collate
from attention_atlas.names.errors import ModelError
from attention_atlas.record.write import shard
from attention_atlas.record.write.batches import WORTH, batches
from tests.record.test_batches import numbered
from tests.store.test_format import SMALL
from tests.tolerance import STORED

PROBLEMS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 83.00 GiB."),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to …"),
    MemoryError(),
]


def small_llama(longest: int = 64) -> LlamaModel:
    torch.manual_seed(0)
    return LlamaModel(LlamaConfig(**SMALL | {"max_position_embeddings": longest})).eval()


def texts(lengths: list[int]) -> list[Any]:
    dice = torch.Generator().manual_seed(1)
    return [{"input_ids": torch.randint(5, 99, (1, n), generator=dice)} for n in lengths]


def fits_only(monkeypatch: pytest.MonkeyPatch, most: int, problem: BaseException) -> list[int]:
    """Lets batches of more than `most` padded tokens fail; returns a list of those that ran."""
    sizes: list[int] = []

    def refusing(items: Any, loaded: Any) -> Any:
        tensors, real = collate(items, loaded)
        count = tensors["input_ids"].numel()
        if count > most:
            raise problem
        sizes.append(count)
        return tensors, real

    monkeypatch.setattr(shard, "collate", refusing)
    return sizes


@pytest.mark.parametrize(
    "problem",
    [PROBLEMS[0], *(pytest.param(problem, marks=pytest.mark.full) for problem in PROBLEMS[1:])],
    ids=lambda problem: type(problem).__name__,
)
def test_a_batch_that_does_not_fit_runs_in_halves(
    problem: BaseException, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, inputs = small_llama(), texts([9] * 8)
    whole = aa.capture(model, inputs, path=tmp_path / "x.atlas", progress=False)
    sizes = fits_only(monkeypatch, 20, problem)
    atlas = aa.capture(model, inputs, path=tmp_path / "y.atlas", progress=False)
    assert sizes == [18] * 4
    for number in range(8):
        np.testing.assert_allclose(
            atlas.weights(number, "L1H2"), whole.weights(number, "L1H2"), atol=STORED
        )


def test_an_input_that_does_not_fit_alone_is_named_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, inputs = small_llama(), texts([9, 8, 10, 40, 9])
    options: Any = {"path": tmp_path / "x.atlas", "shard_bytes": 1, "progress": False}
    with monkeypatch.context() as patch:
        fits_only(patch, 20, PROBLEMS[0])
        with pytest.raises(ModelError, match=r"input 3 of 40 tokens .*run the same command again"):
            aa.capture(model, inputs, **options)
    first = tmp_path / "x.atlas" / "vectors" / "00002.safetensors"
    before = first.stat().st_mtime_ns
    assert len(aa.capture(model, inputs, **options)) == 5
    assert first.stat().st_mtime_ns == before  # it was not made again


def test_another_failure_is_not_taken_for_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fits_only(monkeypatch, 20, RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        aa.capture(small_llama(), texts([9] * 8), path=tmp_path / "x.atlas", progress=False)


@pytest.mark.parametrize("device", WORTH)
@pytest.mark.parametrize("lengths", [[9, 9_900], [9, 10, 8, 9_900, 9, 10, 11]], ids=len)
def test_no_short_text_is_padded_to_one_a_thousand_times_longer(
    device: str, lengths: list[int]
) -> None:
    made = batches(numbered(lengths), 8, WORTH[device])
    assert [lengths.index(9_900)] in [[number for number, _ in batch] for batch in made]


def test_one_long_text_leaves_the_batches_of_the_others_small(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lengths = [2, 3, 2, 2, 3, 2_500, 2, 3, 2, 3, 2, 2]
    sizes = fits_only(monkeypatch, 10**9, MemoryError())
    options: Any = {"path": tmp_path / "x.atlas", "progress": False, "shard_bytes": 4096}
    atlas = aa.capture(small_llama(4096), texts(lengths), **options)
    assert len(atlas) == len(lengths)
    assert max(sizes) == 2_500  # alone, not padded with others
    assert sorted(sizes)[-2] <= 8 * 3
    rows = [len(atlas.tokens(number)) for number in range(len(lengths))]
    assert rows == lengths
    assert len(atlas.manifest.shards) > 1
