"""Do rows drawn at random find every fault that could be planted in a captured run?

Faults are planted in one layer of a run whose trial was faultless, in what is recorded of a call
after the model computed with the right one, or in the form that is written to disk.
"""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

import attention_atlas as aa
from attention_atlas.models.encode import encode
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import load
from attention_atlas.record.prove.shorten import LONG, SHORT, shortened
from attention_atlas.record.prove.spot_check import (
    ROWS,
    Lighten,
    draw_rows,
    rows_each,
    spot_check,
)
from attention_atlas.record.watch import pieces
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.recorder import Recorder
from attention_atlas.store.form import compress
from attention_atlas.store.manifest import receipt_from

N, LAYER = 150, 1
SIZES = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
}  # fmt: skip


def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SIZES)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                weight *= 12  # so that heads look at something
    return model


def text(n: int = N, seed: int = 0) -> dict[str, torch.Tensor]:
    dice = torch.Generator().manual_seed(seed)
    return {"input_ids": torch.randint(1, 50, (1, n), generator=dice)}


def capture(*texts: dict[str, torch.Tensor], **options: Any) -> Any:
    return aa.capture(llama(), list(texts) or [text()], progress=False, **options)


def wrong_scale(call: Call) -> Call:
    return replace(call, scale=call.scale * 1.01)


def shifted_mask(call: Call) -> Call:
    n = call.query.shape[2]
    seen = torch.ones(n, n, dtype=torch.bool).tril(-1)
    seen[0, 0] = True
    return replace(call, mask=seen[None, None], causal=False)


def swapped_head(call: Call) -> Call:
    return replace(call, query=call.query[:, [1, 0, 2, 3]])


def rotary_off_by_one(call: Call) -> Call:
    """The keys of a model that counts their positions from 1; its first frequency is one radian."""
    half = call.key.shape[-1] // 2
    turn = 10_000.0 ** (-torch.arange(half) / half)
    left, right = call.key[..., :half], call.key[..., half:]
    turned = [left * turn.cos() - right * turn.sin(), right * turn.cos() + left * turn.sin()]
    return replace(call, key=torch.cat(turned, -1))


def wrong_group(call: Call) -> Call:
    return replace(call, key=call.key.flip(1), value=call.value.flip(1))


FAULTS = [wrong_scale, shifted_mask, swapped_head, rotary_off_by_one, wrong_group]


def plant(monkeypatch: pytest.MonkeyPatch, fault: Callable[[Call], Call], longer_than: int) -> None:
    """Plant a fault in what is recorded of one layer, in passes over more tokens than the trial."""
    honest = Recorder._call

    def recorded(self: Recorder, passing: Any) -> Call:
        call = honest(self, passing)
        in_run = call.query.shape[2] > longer_than and f"layers.{LAYER}." in call.module
        return fault(call) if in_run else call

    monkeypatch.setattr(Recorder, "_call", recorded)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_fault_in_one_layer_of_the_run_stops_the_capture(
    fault: Callable[[Call], Call], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, fault, longer_than=SHORT)
    texts = [text(N - index, index) for index in range(batch)]
    with pytest.raises(aa.ModelError, match="layer 1 of decoder gave an output that its attention"):
        capture(*texts)


def test_without_a_fault_the_rows_agree_and_the_receipt_counts_them() -> None:
    receipt = capture().receipt
    layers = SIZES["num_hidden_layers"]
    assert receipt.exact and receipt.run_error < 1e-5
    assert (receipt.run.compared, receipt.run.of) == (layers * ROWS, layers * N)
    assert (receipt.tried.compared, receipt.tried.of) == (layers * SHORT, layers * N)


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_mask_shifted_on_its_way_to_disk_is_found(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = pieces._form

    def form(call: Call, *places: Any) -> Any:
        found = honest(call, *places)
        in_run = call.query.shape[2] > SHORT
        return replace(found, low=found.low + shift) if in_run else found

    monkeypatch.setattr(pieces, "_form", form)
    with pytest.raises(aa.ModelError, match="read from disk, are not those of the model"):
        capture()


def test_the_error_on_disk_is_the_rounding_of_the_vectors() -> None:
    """The strongest weights on disk against those of the model's own eager attention."""
    atlas, model = capture(), llama()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(**text(), output_attentions=True).attentions
    for layer in atlas.receipt.layers:
        true = maps[layer.layer][0].double().numpy()
        off = np.abs(atlas.layer_weights(0, layer.layer) - true).max()
        # float32 against float32 agrees to 1e-5; the rest is rounding, seen in some rows only
        assert 0 < layer.stored_error <= off + 1e-5


def test_every_span_gives_one_row_and_every_row_is_as_likely() -> None:
    dice = torch.Generator().manual_seed(0)
    rows = draw_rows(64, 4000, dice, count=16)
    assert (rows // 4 == torch.arange(16)).all()
    counts = torch.bincount(rows.flatten(), minlength=64).double()
    # each row is drawn with probability 1/4 in 4,000 draws: 1,000, standard deviation 27
    assert ((counts - 1000).abs() < 5 * 27.4).all()
    assert draw_rows(5, 2, dice).tolist() == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.2])
def test_a_fault_in_a_share_of_the_rows_is_found_as_often_as_stated(share: float) -> None:
    """1 − (1 − p)^R by simulation, for faulty rows that lie anywhere and that lie together."""
    n, runs = 1600, 4000
    dice = torch.Generator().manual_seed(1)
    rows = draw_rows(n, runs, dice)
    stated = 1 - (1 - share) ** ROWS
    slack = 5 * np.sqrt(stated * (1 - stated) / runs)  # five standard deviations
    anywhere = torch.rand(runs, n, generator=dice) < share
    together = (torch.arange(n) < share * n).expand(runs, n)
    assert abs(anywhere.gather(1, rows).any(1).double().mean() - stated) <= slack
    assert together.gather(1, rows).any(1).double().mean() >= stated - slack


def test_a_batch_gives_rows_of_every_input() -> None:
    assert [rows_each(inputs) for inputs in (1, 2, 3, 4, 8, 32)] == [16, 16, 10, 8, 4, 4]
    texts = [text(N - index, index) for index in range(8)]
    receipt = capture(*texts, batch_size=8).receipt
    layers, tokens = SIZES["num_hidden_layers"], sum(N - index for index in range(8))
    assert receipt.run.of == layers * tokens
    # 4 rows of each of 8 inputs; of the last spans of the shorter ones a few rows are padding
    assert layers * 8 * 3 <= receipt.run.compared <= layers * 8 * 4


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
def test_a_fault_in_a_share_of_a_batch_is_found_as_often_as_stated(share: float) -> None:
    """The same for 8 inputs together, whether all of them are wrong somewhere or only one is."""
    n, inputs, runs = 200, 8, 4000
    dice = torch.Generator().manual_seed(3)
    rows = draw_rows(n, runs * inputs, dice, rows_each(inputs)).view(runs, inputs, -1)
    drawn = torch.zeros(runs, inputs, n, dtype=torch.bool).scatter_(2, rows, True)
    stated = 1 - (1 - share) ** (inputs * rows_each(inputs))
    slack = 5 * np.sqrt(stated * (1 - stated) / runs)
    first = torch.arange(n) < share * n
    alone = torch.zeros(inputs, n, dtype=torch.bool)
    alone[5] = torch.arange(n) < share * n * inputs
    for wrong in (first.expand(inputs, n), alone):
        assert (drawn & wrong).flatten(1).any(1).double().mean() >= stated - slack


def test_rows_of_a_call_find_a_fault_of_few_rows_as_often_as_stated() -> None:
    """The whole check, on a call whose output is wrong in a tenth of its rows."""
    dice = torch.Generator().manual_seed(2)
    query, key, value = (torch.randn(1, 2, 160, 4, generator=dice) for _ in range(3))
    weights = torch.softmax(query @ key.transpose(-1, -2) / 2, -1)
    output = (weights @ value).transpose(1, 2).clone()
    output[:, torch.randperm(160, generator=dice)[:16]] += 0.1
    call = Call("attention", "", False, None, 0, 0, query, key, value, 0.5, output=output)
    found = [
        spot_check(Lighten(seed=seed)([call])[0].samples[0], None, None).output > 1e-3
        for seed in range(400)
    ]
    stated = 1 - 0.9**ROWS
    assert np.mean(found) >= stated - 5 * np.sqrt(stated * (1 - stated) / 400)


def test_long_texts_are_cut_and_stay_of_different_length() -> None:
    loaded = load(llama())
    items = [encode(loaded, given) for given in read_inputs([text(90), text(150), text(7)])]
    for most in (SHORT, LONG):
        short = shortened(items[:2], most)
        lengths = [item.tensors["input_ids"].shape[1] for item in short]
        assert lengths == ([48, 64] if most == SHORT else [90, 150])
        assert [len(item.streams["text"]) for item in short] == lengths
        assert [item.tensors["attention_mask"].shape[1] for item in short] == lengths
    assert shortened(items[2:], SHORT) == items[2:]


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes how many numbers the largest tensor has that torch makes."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.most = max(self.most, tensor.numel())
        return out


def test_a_long_text_never_asks_for_all_pairs(tmp_path: Path) -> None:
    n = 3000
    model = LlamaForCausalLM(LlamaConfig(**{**SIZES, "max_position_embeddings": n})).eval()
    tracemalloc.start()  # NumPy tells it of its arrays
    try:
        with Largest() as seen:  # type: ignore[no-untyped-call]
            atlas = aa.capture(model, [text(n)], path=tmp_path / "x.atlas", progress=False)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert atlas.receipt.exact
    assert seen.most < n * n / 4
    assert most < n * n * 4


@pytest.mark.parametrize("n", [300, 2000])
def test_a_mask_is_compressed_without_numbers_for_all_pairs(n: int) -> None:
    offset = np.arange(n)[:, None] - np.arange(n)[None, :]
    window = ((offset >= 0) & (offset < 100))[None]
    tracemalloc.start()
    form = compress(window)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (form.low, form.high, form.hidden) == (0, 99, None)
    assert most < 40_000_000  # blocks of a million numbers, whatever n is


def test_the_receipt_of_an_older_atlas_says_nothing_of_rows() -> None:
    old = {"how": "named", "dtype": "float32", "bound": 1e-5, "layers": [], "missing": []}
    receipt = receipt_from(old)
    assert receipt.tried is None and receipt.run is None and receipt.rows_line == ""


WINDOW = 100  # longer than what is tried


def windowed(n: int) -> MistralForCausalLM:
    torch.manual_seed(0)
    config = MistralConfig(**{**SIZES, "sliding_window": WINDOW, "max_position_embeddings": n})
    return MistralForCausalLM(config).eval()


def wider_window(call: Call) -> Call:
    assert call.mask is not None
    n = call.query.shape[2]
    offset = torch.arange(n)[:, None] - torch.arange(n)
    return replace(call, mask=((offset >= 0) & (offset <= WINDOW))[None, None])


def test_a_window_longer_than_the_trial_is_proven_by_the_run() -> None:
    atlas = aa.capture(windowed(300), [text(300)], progress=False)
    assert atlas.receipt.exact and atlas.receipt.run_error is not None
    weights = atlas.layer_weights(0, LAYER)
    assert (weights[:, WINDOW:, 0] == 0).all() and (weights[:, WINDOW - 1, 0] > 0).all()


def test_a_window_off_by_one_beyond_the_trial_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, wider_window, longer_than=WINDOW)
    with pytest.raises(aa.ModelError, match="layer 1 of decoder gave an output that its attention"):
        aa.capture(windowed(300), [text(300)], progress=False)
