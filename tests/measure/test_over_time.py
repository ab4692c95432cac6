"""Checkpoints of one model, and a model with and without an adapter, as lines per head."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import attention_atlas as aa
from attention_atlas.models.load import load
from tests import atlases
from tests.atlases import OTHER, SENTENCE

TEXTS: list[Any] = [SENTENCE, OTHER, "One, two, three, four, one, two, three, four."]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> list[aa.Atlas]:
    """A built-in model while it is trained away from itself: three checkpoints."""
    folder = tmp_path_factory.mktemp("checkpoints")
    loaded = load("builtin:gpt")
    model: Any = loaded.model
    tokenizer: Any = loaded.processor
    ids = tokenizer(SENTENCE, return_tensors="pt").input_ids
    step = torch.optim.SGD(model.parameters(), lr=0.3)
    found = []
    for number in range(3):
        path = folder / f"step{number}.atlas"
        given: Any = (model.eval(), tokenizer)
        found.append(aa.capture(given, TEXTS, path=path, progress=False))
        for _ in range(2):
            model(input_ids=ids, labels=ids.flip(1)).loss.backward()
            step.step()
            step.zero_grad()
    return found


@pytest.mark.full
def test_lines_are_the_scores_of_each_checkpoint_and_its_distance_from_the_first(
    checkpoints: list[aa.Atlas],
) -> None:
    comparison = aa.compare(*checkpoints)
    lines = comparison.lines("entropy")
    for model, atlas in enumerate(checkpoints):
        own: Any = atlas.heads().set_index("head")["entropy"]
        np.testing.assert_allclose(lines.values[model], own[list(lines.heads)].to_numpy())
    away = comparison.lines()
    assert away.values[0].max() == 0
    assert (away.values[2] > 0).all() and away.values[2].mean() > away.values[1].mean()
    for model in (1, 2):
        expected = dict(comparison.changed(model) or [])
        assert away.table().iloc[:, model].to_dict() == pytest.approx(expected)
    head, change = lines.most_changed(1)[0]
    place = lines.heads.index(head)
    assert abs(change) == pytest.approx(np.abs(lines.values[2] - lines.values[0]).max())
    assert change == lines.values[2, place] - lines.values[0, place]
    drawing = away._repr_svg_()
    assert drawing.count("<polyline") == len(away.heads) == 36


@pytest.mark.full
def test_an_adapter_changes_heads_from_its_layer_on(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    loaded = load("builtin:gpt")
    torch.manual_seed(0)
    config = peft.LoraConfig(target_modules=[r"transformer.h.3.attn.c_attn"], fan_in_fan_out=True)
    with_adapter = peft.get_peft_model(loaded.model, config)
    for name, parameter in with_adapter.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    with_adapter.save_pretrained(tmp_path / "adapter")
    options: Any = {"progress": False}
    plain = aa.capture("builtin:gpt", TEXTS, path=tmp_path / "plain.atlas", **options)
    tuned = aa.capture(
        "builtin:gpt", TEXTS, path=tmp_path / "tuned.atlas", adapter=tmp_path / "adapter", **options
    )
    away = aa.compare(plain, tuned).lines().table().iloc[:, 1]
    before = [head for head in away.index if int(head[1]) < 3]
    assert away[before].max() < 1e-6
    assert away[[head for head in away.index if head.startswith("L3")]].min() > 1e-3


def test_checkpoints_of_different_shape_are_refused_in_a_sentence(
    checkpoints: list[aa.Atlas], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    config = hf.GPT2Config(vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=64,
                           bos_token_id=0, eos_token_id=0)  # fmt: skip
    small: Any = (hf.GPT2LMHeadModel(config).eval(), atlases.word_tokenizer())
    other = aa.capture(small, TEXTS[:1], path=tmp_path / "small.atlas", progress=False)
    comparison = aa.compare(checkpoints[0], other)
    with pytest.raises(
        aa.InputError, match=r"has 36 heads and .* has others \(2\); lines per head"
    ):
        comparison.lines()
    with pytest.raises(aa.PickError, match="there is no score 'none'; there is away, importance"):
        aa.compare(*checkpoints[:2]).lines("none")
