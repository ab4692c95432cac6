"""Is gradient importance right where one module is visited several times, as in ALBERT?"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers import AlbertConfig, AlbertForMaskedLM

import attention_atlas as aa
from attention_atlas.models.load import Loaded, load
from attention_atlas.record.watch.gradients import gradient_importance
from attention_atlas.store import files
from tests.atlases import SENTENCE
from tests.record.test_capture import lively

VISITS, HEADS = 3, 4


@pytest.fixture
def albert() -> Loaded:
    """Three visits to one layer, in float64, so that only a wrong gate makes a difference."""
    tokenizer: Any = load("builtin:bert").processor
    config = AlbertConfig(
        vocab_size=len(tokenizer), hidden_size=32, embedding_size=16, num_hidden_layers=VISITS,
        num_attention_heads=HEADS, intermediate_size=48, max_position_embeddings=64,
    )  # fmt: skip
    return load((lively(AlbertForMaskedLM(config)).double().eval(), tokenizer))


def captured(loaded: Loaded, text: str, **options: Any) -> aa.Atlas:
    model: Any = (loaded.model, loaded.processor)
    return aa.capture(model, [text], progress=False, **options)


@contextmanager
def gated(model: Any) -> Iterator[list[torch.Tensor]]:
    """A gate for each head on what goes into the output projection, new at each visit."""
    gates: list[torch.Tensor] = []

    def gate(_module: Any, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        gates.append(torch.ones(HEADS, dtype=args[0].dtype, requires_grad=True))
        return (args[0] * gates[-1].repeat_interleave(args[0].shape[-1] // HEADS),)

    (projection,) = (one for name, one in model.named_modules() if name.endswith("attention.dense"))
    hook = projection.register_forward_pre_hook(gate)
    yield gates
    hook.remove()


def test_each_visit_to_a_shared_layer_has_a_gradient_of_its_own(albert: Loaded) -> None:
    """Against autograd on gates that are put in by hand, on the ids that were masked."""
    atlas = captured(albert, SENTENCE)
    assert [(one.layer, one.visit) for one in atlas.towers[0].layers] == [(0, 0), (1, 1), (2, 2)]
    seen: list[dict[str, torch.Tensor]] = []
    hook = albert.model.register_forward_pre_hook(
        lambda _module, _args, given: seen.append(given), with_kwargs=True
    )
    slopes = gradient_importance(atlas, albert)
    hook.remove()
    ids = albert.tokenizer(SENTENCE, return_tensors="pt")["input_ids"]
    masked = seen[-1]["input_ids"] != ids
    assert masked.any()
    with gated(albert.model) as gates:
        logits = albert.model(**seen[-1]).logits
        loss = F.cross_entropy(logits[masked], ids[masked])
        expected = torch.cat(torch.autograd.grad(loss, gates)).abs()
    # The same products in another order: a few thousand additions of float64.
    rounding = 4096 * np.finfo(np.float64).eps
    np.testing.assert_allclose(slopes[0], expected, rtol=0, atol=rounding * float(expected.max()))
    by_visit = expected.reshape(VISITS, HEADS)
    assert (by_visit[0] - by_visit[2]).abs().max() > 0.01 * by_visit.max()


def test_a_text_that_was_cut_is_cut_again(albert: Loaded) -> None:
    long = " ".join([SENTENCE] * 10)
    atlas = captured(albert, long, truncate=True)
    assert gradient_importance(atlas, albert).shape == (1, VISITS * HEADS)


def test_parts_in_training_are_in_training_after(albert: Loaded) -> None:
    """A model that is being tuned may have some parts in training and others not."""
    atlas = captured(albert, SENTENCE)
    albert.model.albert.encoder.train()
    before = {name: module.training for name, module in albert.model.named_modules()}
    gradient_importance(atlas, albert)
    assert {name: module.training for name, module in albert.model.named_modules()} == before


def test_an_atlas_that_was_written_without_visits_counts_them(
    albert: Loaded, tmp_path: Path
) -> None:
    captured(albert, SENTENCE, path=tmp_path / "a.atlas")
    manifest = tmp_path / "a.atlas" / "atlas.json"
    raw = files.read_json(manifest)
    for layer in raw["towers"][0]["layers"]:
        del layer["visit"]
    files.write_json(manifest, raw)
    (tower,) = aa.open(tmp_path / "a.atlas").towers
    assert [layer.visit for layer in tower.layers] == [0, 1, 2]
