"""What needs the live model: repeated random tokens, gradients; and what heads do is causal."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

import attention_atlas as aa
from attention_atlas.models.load import Loaded, load
from attention_atlas.record.watch.gradients import gradient_importance
from attention_atlas.record.write.repeats import repeated
from tests.atlases import OTHER, SENTENCE
from tests.places import minilm

# The induction and the previous-token head, as the model's card names them.
INDUCTION, PREVIOUS = "L4H5", "L3H2"


@pytest.fixture(scope="module")
def gpt() -> Loaded:
    return load("builtin:gpt")


@pytest.fixture(scope="module")
def measured(gpt: Loaded, tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    path = tmp_path_factory.mktemp("live") / "gpt.atlas"
    model: Any = (gpt.model, gpt.processor)
    atlas = aa.capture(model, [SENTENCE, OTHER], path=path, progress=False)
    atlas.measure(model, progress=False)
    return atlas


@pytest.mark.full
def test_the_previous_token_and_the_induction_head_are_found(measured: aa.Atlas) -> None:
    heads: Any = measured.heads().set_index("head")
    scores = measured.scores()
    assert scores is not None
    assert heads["previous"].idxmax() == PREVIOUS
    assert heads.loc[PREVIOUS, "kind"] == "parallel"
    assert heads.loc[PREVIOUS, "detail"] == "1 before"
    assert heads.loc[INDUCTION, "random-induction"] > 0.8
    table = scores.table.set_index(["head", "measure"])
    row: Any = table.loc[(INDUCTION, "random-induction")]
    assert row["low"] > 10 * row["chance"] and row["n"] == 16


def second_half_loss(model: Any, ids: torch.Tensor) -> float:
    half = ids.shape[1] // 2
    with torch.no_grad():
        logits = model(input_ids=ids).logits
    return float(torch.nn.functional.cross_entropy(logits[0, half:-1], ids[0, half + 1 :]))


def loss_without(loaded: Loaded, head: str, inputs: list[torch.Tensor]) -> float:
    """The loss on the repeated half once a head's rows of the output projection are zero."""
    layer, number = int(head[1]), int(head[3])
    weight = loaded.model.transformer.h[layer].attn.c_proj.weight  # (in, out)
    own = slice(32 * number, 32 * (number + 1))
    with torch.no_grad():
        before = weight[own].clone()
        weight[own] = 0
        try:
            return float(np.mean([second_half_loss(loaded.model, ids) for ids in inputs]))
        finally:
            weight[own] = before


@pytest.mark.full
def test_without_the_induction_head_repetition_is_lost_more_than_without_random_heads(
    gpt: Loaded, measured: aa.Atlas
) -> None:
    dice = torch.Generator().manual_seed(3)
    inputs = [repeated(gpt, dice) for _ in range(6)]
    others = [str(name) for name in measured.heads()["head"] if name != INDUCTION]
    picked = np.random.default_rng(0).choice(others, 10, replace=False)
    hurt = loss_without(gpt, INDUCTION, inputs)
    assert hurt > 2 + max(loss_without(gpt, str(name), inputs) for name in picked)


def test_a_high_induction_score_is_a_pattern_and_not_yet_a_cause(
    gpt: Loaded, measured: aa.Atlas
) -> None:
    """Three heads have the pattern; one of them carries the repetition, and it scores second."""
    scores: Any = measured.heads().set_index("head")["random-induction"]
    assert set(scores[scores > 0.8].index) == {INDUCTION, "L5H2", "L5H4"}
    dice = torch.Generator().manual_seed(3)
    inputs = [repeated(gpt, dice) for _ in range(6)]
    whole = float(np.mean([second_half_loss(gpt.model, ids) for ids in inputs]))
    assert scores["L5H2"] > scores[INDUCTION]
    assert loss_without(gpt, "L5H2", inputs) < whole + 0.1 < loss_without(gpt, INDUCTION, inputs)


def test_gradient_importance_is_the_slope_of_the_loss_along_each_head(
    gpt: Loaded, measured: aa.Atlas
) -> None:
    """Against finite differences: scale a head's rows of the output projection by 1 ± ε."""
    slopes = gradient_importance(measured, gpt)
    assert slopes.shape == (2, 36)
    ids = gpt.tokenizer(SENTENCE, return_tensors="pt")["input_ids"]
    names = measured.heads()["head"].tolist()

    def loss(head: str, scale: float) -> float:
        layer, number = int(head[1]), int(head[3])
        weight = gpt.model.transformer.h[layer].attn.c_proj.weight
        own = slice(32 * number, 32 * (number + 1))
        with torch.no_grad():
            before = weight[own].clone()
            weight[own] = before * scale
            logits = gpt.model(input_ids=ids).logits
            weight[own] = before
        return float(torch.nn.functional.cross_entropy(logits[0, :-1].double(), ids[0, 1:]))

    for head in ("L0H1", "L3H2", "L5H4"):
        numeric = abs(loss(head, 1.01) - loss(head, 0.99)) / 0.02
        assert slopes[0, names.index(head)] == pytest.approx(numeric, rel=0.05, abs=2e-4)


def test_masked_models_have_gradients_too(tmp_path: Any) -> None:
    atlas = aa.capture("builtin:bert", [SENTENCE], path=tmp_path / "b.atlas", progress=False)
    slopes = gradient_importance(atlas, load("builtin:bert"))
    assert slopes.shape == (1, 36) and (slopes > 0).all()


def test_a_model_that_predicts_nothing_says_so(tmp_path: Any) -> None:
    network = AutoModel.from_pretrained(minilm()).eval()
    loaded = load((network, load(minilm()).processor))
    model: Any = (network, loaded.processor)
    atlas = aa.capture(model, [SENTENCE], path=tmp_path / "m.atlas", progress=False)
    with pytest.raises(aa.ModelError, match="predicts no tokens"):
        gradient_importance(atlas, loaded)


def test_another_model_than_the_captured_one_is_refused(measured: aa.Atlas) -> None:
    with pytest.raises(aa.ModelError, match="captured from a GPT2LMHeadModel"):
        measured.measure("builtin:bert", progress=False)
