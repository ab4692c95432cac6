"""Does an atlas of an edited model say what was done, and is its receipt true?"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attention_atlas as aa
from attention_atlas.edits.table import from_json
from tests.edits.shapes import HEADS, WIDTH
from tests.record.test_two_threads import gpt, llama
from tests.record.zoo import ZOO
from tests.tolerance import STORED

INPUTS = [{"input_ids": torch.tensor([list(range(3, 3 + n))])} for n in (9, 5, 7, 6)]
pytestmark = pytest.mark.filterwarnings("ignore")


def capture(model: Any, edits: Any, **options: Any) -> aa.Atlas:
    return aa.capture((model, None), INPUTS, edits=edits, progress=False, **options)


def plain_maps(model: Any, number: int) -> list[torch.Tensor]:
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps: list[torch.Tensor] = model(**INPUTS[number], output_attentions=True).attentions
    return maps


def test_an_atlas_says_what_was_done(tmp_path: Path) -> None:
    edits = [aa.ablate("L0H1"), aa.ablate("L1H2", by="resample", seed=4)]
    capture(gpt(), edits, path=tmp_path / "x.atlas")
    atlas = aa.open(tmp_path / "x.atlas")
    first, second = (from_json(raw) for raw in atlas.edits)
    assert first == edits[0]
    assert [raw["input_ids"] for raw in second.to_json()["from"]] == [
        given["input_ids"].tolist() for given in INPUTS
    ]
    assert atlas.receipt.exact and atlas.receipt.run_error is not None
    assert capture(gpt(), ()).edits == ()
    raw = json.loads((tmp_path / "x.atlas" / "atlas.json").read_text())
    assert raw["format"] == 2


@pytest.mark.parametrize("build", [gpt, llama])
def test_weights_of_layers_after_an_ablation_are_those_of_a_model_cut_by_hand(build: Any) -> None:
    atlas = capture(build(), [aa.ablate("L0H1")])
    model = build()
    name = "transformer.h.0.attn.c_proj" if build is gpt else "layers.0.self_attn.o_proj"
    weight = model.get_submodule(name).weight
    own = slice(WIDTH, 2 * WIDTH)
    with torch.no_grad():
        weight[(own,) if build is gpt else (slice(None), own)] = 0
    for number in range(len(INPUTS)):
        for head in range(HEADS):
            mine = atlas.weights(input=number, head=f"L1H{head}")
            expected = plain_maps(model, number)[1][0, head]
            assert np.abs(mine - expected.numpy()).max() <= STORED
    # What a silenced head looks at is still there: its weights are the plain ones.
    mine = atlas.weights(input=0, head="L0H1")
    assert np.abs(mine - plain_maps(build(), 0)[0][0, 1].numpy()).max() <= STORED


@pytest.mark.parametrize("build", [gpt, llama, lambda: ZOO["GPT-OSS"].build()])
def test_a_pattern_that_was_set_is_what_the_atlas_has(build: Any) -> None:
    atlas = capture(build(), [aa.pattern("L1H2", "previous", inputs=[1, 3])])
    assert atlas.receipt.exact
    plain = capture(build(), ())
    for number, given in enumerate(INPUTS):
        n = given["input_ids"].shape[1]
        expected: np.ndarray[Any, Any] = np.eye(n, k=-1)
        expected[0, 0] = 1
        if number not in (1, 3):
            expected = plain.weights(input=number, head="L1H2")
        mine = atlas.weights(input=number, head="L1H2")
        assert np.abs(mine - expected).max() <= 2 * STORED
        other = atlas.weights(input=number, head="L1H1")
        assert np.abs(other - plain.weights(input=number, head="L1H1")).max() <= 2 * STORED


def test_what_is_generated_under_edits_is_captured() -> None:
    atlas = aa.capture("builtin:gpt", ["The old man"], edits=aa.pattern("L2H1", "self"),
                       generate=4, progress=False)  # fmt: skip
    weights = atlas.weights(input=0, head="L2H1")
    assert atlas.receipt.exact and len(weights) > 4
    assert np.abs(weights - np.eye(len(weights))).max() <= STORED


def test_resample_never_takes_an_inputs_own_values() -> None:
    """With two inputs each takes the other's: as a patch of the output, where positions agree."""
    inputs = [INPUTS[2], {"input_ids": INPUTS[2]["input_ids"].flip(1)}]
    options: dict[str, Any] = {"progress": False, "keep": ("weights",)}
    mine = aa.capture((gpt(), None), inputs, edits=aa.ablate("L0", by="resample"), **options)
    patches = [aa.patch("L0", from_=inputs[1], inputs=0), aa.patch("L0", from_=inputs[0], inputs=1)]
    theirs = aa.capture((gpt(), None), inputs, edits=patches, **options)
    for number in (0, 1):
        a, b = (atlas.weights(input=number, head="L1H0") for atlas in (mine, theirs))
        np.testing.assert_allclose(a, b, atol=1e-6, rtol=0)


def test_an_atlas_with_edits_is_not_taken_for_one_without(tmp_path: Path) -> None:
    model = gpt()
    capture(model, (), path=tmp_path / "x.atlas")
    capture(model, (), path=tmp_path / "x.atlas")  # the same: opened
    with pytest.raises(aa.AtlasError):
        capture(model, aa.ablate("L0H0"), path=tmp_path / "x.atlas")


def test_a_traced_model_is_captured_with_a_head_silenced() -> None:
    build = ZOO["GPT-J"].build
    atlas = capture(build(), [aa.ablate("L0H1")])
    assert atlas.receipt.exact and atlas.receipt.how == "trace"
    model = build("eager")
    with torch.no_grad():
        model.h[0].attn.out_proj.weight[:, WIDTH : 2 * WIDTH] = 0
        expected = model(**INPUTS[0], output_attentions=True).attentions[2][0]
    mine = np.stack([atlas.weights(input=0, head=f"L2H{head}") for head in range(HEADS)])
    assert np.abs(mine - expected.numpy()).max() <= STORED
