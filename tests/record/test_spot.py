"""Sampled rows tell the truth about the whole, one layer at a time or many at one go."""

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch

from attention_atlas.record.prove import spot_check as check
from attention_atlas.record.prove.spot_check import (
    Errors,
    Lighten,
    samples_of,
    spot_check,
    spot_checks,
)
from attention_atlas.record.watch.call import Call
from attention_atlas.record.watch.layers import layers_of

B, H, G, N, D = 5, 4, 2, 6, 8


def made(seed: int, **others: Any) -> Call:
    """A call whose output was worked out in double precision by plain NumPy."""
    dice = torch.Generator().manual_seed(seed)
    query, key, value = (torch.randn(B, h, N, D, generator=dice) * 3 for h in (H, G, G))
    call = Call(
        module=f"layers.{seed}.attention", tower="", cross=False, place=("layers", seed, 9),
        visit=0, step=0, query=query, key=key, value=value, scale=0.5, **others,
    )  # fmt: skip
    moved = weights_of(call) @ value.numpy().astype(float).repeat(H // G, axis=1)
    return replace(call, output=torch.from_numpy(moved).float().transpose(1, 2))


def weights_of(call: Call, round_to: Any = np.float32) -> np.ndarray[Any, Any]:
    query, key = (x.numpy().astype(round_to).astype(float) for x in (call.query, call.key))
    logits = query @ key.repeat(H // G, axis=1).swapaxes(-1, -2) * call.scale
    if call.softcap is not None:
        logits = call.softcap * np.tanh(logits / call.softcap)
    if call.bias is not None:
        logits = logits + call.bias.numpy()
    if call.mask is not None:
        logits = np.where(call.mask.numpy(), logits, -1e30)
    if call.causal:
        logits = np.where(np.triu(np.ones((N, N), bool), 1), -1e30, logits)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    extra = 0.0
    if call.sink is not None:
        extra = np.exp(call.sink.numpy()[:, None, None] - logits.max(-1, keepdims=True))
    return np.asarray(powers / (powers.sum(-1, keepdims=True) + extra))


def checked(call: Call, real: torch.Tensor | None = None) -> Errors:
    (sample,) = Lighten()([call])[0].samples
    return spot_check(sample, real, real)


MASK = torch.ones(B, 1, N, N, dtype=torch.bool)
MASK[:, :, :, -2:] = False
KINDS: list[dict[str, Any]] = [
    {},
    {"mask": MASK},
    {"mask": MASK[:1]},
    {"causal": True},
    {"bias": torch.linspace(-2, 2, H * N * N).reshape(1, H, N, N)},
    {"softcap": 2.0},
    {"sink": torch.tensor([0.0, 1.0, 2.0, 3.0])},
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "+".join(kind) or "plain")
def test_rows_of_a_right_call_are_right_and_show_its_rounding(kind: dict[str, Any]) -> None:
    call = made(0, **kind)
    errors = checked(call)
    assert errors.output < 1e-5
    assert (errors.rows, errors.of) == (
        B * N,
        B * N,
    )  # all rows: N is rows_each(B)
    by_hand = np.abs(weights_of(call) - weights_of(call, np.float16)).max()
    assert errors.rounding == pytest.approx(by_hand, rel=0.01)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "+".join(kind) or "plain")
def test_rows_in_blocks_are_the_same_rows(
    kind: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = made(0, **kind)
    (whole,) = Lighten(seed=3, told=True)([call])[0].samples
    for largest in (1, H * N, 3 * H * N, 2 * H * N * N):
        monkeypatch.setattr(check, "LARGEST", largest)
        (parts,) = Lighten(seed=3, told=True)([call])[0].samples
        for field in fields(whole)[2:]:
            torch.testing.assert_close(getattr(parts, field.name), getattr(whole, field.name))


@pytest.mark.parametrize("kind", KINDS[:-1], ids=lambda kind: "+".join(kind) or "plain")
@pytest.mark.parametrize("sequences", [B, 1], ids=["all", "one"])
def test_alike_layers_in_one_product_show_what_each_shows_alone(
    kind: dict[str, Any], sequences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "SEQUENCES", sequences)
    wrong = made(1, **kind)
    calls = [made(0, **kind), replace(wrong, value=wrong.value * 2), made(2, **kind)]
    together = samples_of(calls, torch.Generator().manual_seed(5), told=True)
    for sample, call in zip(together, calls, strict=True):
        (alone,) = samples_of([call], torch.Generator().manual_seed(5), told=True)
        for field in fields(alone):
            torch.testing.assert_close(getattr(sample, field.name), getattr(alone, field.name))
    errors = [spot_check(sample, None, None).output for sample in together]
    assert [error > 1e-3 for error in errors] == [False, True, False]


def test_only_calls_of_a_gpu_that_differ_in_their_vectors_alone_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OnGpu(torch.Tensor):
        """A tensor of the CPU that says it is on a GPU."""

        is_cuda = True

    def far(seed: int, **changes: Any) -> Call:
        call = made(seed)
        return replace(call, query=call.query.as_subclass(OnGpu), **changes)

    sink = torch.zeros(H)
    calls = [far(0), far(1), far(2, mask=MASK), far(3, mask=MASK), far(4, mask=MASK.clone()),
             far(5, scale=0.1), far(6, sink=sink), far(7, sink=sink), made(8), made(9)]  # fmt: skip
    assert [len(group) for group in check._alike(calls)] == [2, 2, 1, 1, 1, 1, 1, 1]
    monkeypatch.setattr(check, "LARGEST", 3 * B * H * N * N)
    assert [len(group) for group in check._alike([far(seed) for seed in range(7)])] == [3, 3, 1]


def test_one_wrong_layer_is_found_among_right_ones() -> None:
    calls = [made(seed) for seed in range(4)]
    calls[2] = replace(calls[2], scale=0.45)
    calls.append(replace(made(7), mask=MASK))  # its output came from keys that it says are hidden
    errors = [checked(call).output for call in calls]
    assert [error > 1e-3 for error in errors] == [False, False, True, False, True]


def test_many_layers_looked_at_together_show_what_each_shows_alone() -> None:
    real = torch.ones(B, N, dtype=torch.bool)
    real[0, -1] = False
    calls = [made(0), replace(made(1), scale=0.45), made(2)]
    calls[2].output[1, 2] = math.nan  # type: ignore[index]
    samples = [Lighten()([call])[0].samples[0] for call in calls]
    together = spot_checks(samples, real, None)
    assert together == [spot_check(sample, real, None) for sample in samples]
    assert together[0].output < together[1].output < together[2].output == math.inf


def test_padded_queries_do_not_count_and_weight_on_padded_keys_does() -> None:
    real = torch.ones(B, N, dtype=torch.bool)
    real[0, -1] = False
    broken = made(0, mask=real[:, None, None, :].expand(B, 1, N, N))
    assert broken.output is not None
    broken.output[0, -1] = math.nan
    assert checked(broken, real).output < 1e-5
    assert checked(broken, real).rows == checked(broken, real).of == B * N - 1
    assert checked(broken).output == math.inf
    looks = made(1)
    lost = weights_of(looks)[0, :, :-1, -1].max()
    assert checked(looks, real).output == pytest.approx(lost, rel=1e-3)


def test_what_stays_is_rounded_but_for_fine_modules_and_values_beyond_the_range() -> None:
    light = Lighten(fine={"layers.1.attention"})
    huge = replace(made(2), value=torch.full((B, G, N, D), 1e6))
    rounded, fine, huge = light([made(0), made(1), huge])
    kinds = [[x.dtype for x in (c.query, c.key, c.value)] for c in (rounded, fine, huge)]
    half, full = torch.float16, torch.float32
    assert kinds == [[half] * 3, [full] * 3, [half, half, full]]
    assert Lighten(everything=True)([made(0)])[0].query.dtype == full


def test_queries_shared_by_two_calls_are_still_one_attention_after_rounding() -> None:
    def calls_of(first: Call, second: Call) -> tuple[Call, ...]:
        light = Lighten()
        (layer,) = layers_of(light([first, second]))
        return layer.steps[0]

    first = made(0)
    second = replace(first, value=first.value * 2)
    (merged,) = calls_of(first, second)
    assert merged.value.shape[-1] == 2 * D and len(merged.samples) == 2
    assert len(calls_of(first, replace(second, query=first.query.clone()))) == 2


def test_values_beyond_fp16_on_another_device_are_told_after_the_batch() -> None:
    class Elsewhere(torch.Tensor):
        """A tensor of the CPU that says it is on a GPU."""

        device = torch.device("meta")

    light = Lighten()
    far = made(0)
    large = (far.value * 1e6).as_subclass(Elsewhere)
    light._in_half(replace(far, module="far", value=large))
    light._in_half(replace(far, module="near", value=far.value.as_subclass(Elsewhere)))
    assert light.beyond() == {"far"}
    assert light.beyond() == set()
