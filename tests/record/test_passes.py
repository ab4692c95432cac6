"""How often does a capture run the model? Each pass that is not one of its batches is a cost."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch import nn

import attention_atlas as aa
from attention_atlas.models.load import Loaded, load
from attention_atlas.record.watch.ways import observe, without_logits

TEXTS = [f"Sentence {n} tells of {'very ' * (n % 5)}old men." for n in range(9)]
# Our eager attention with weights, a plain pass with witnesses, and a pass as the capture runs it.
TRIAL = 3
SURVEY = 2  # a picture, and the same picture with some patches altered


class Count:
    """The number of passes of one model so far."""

    def __init__(self, model: nn.Module):
        self.passes = 0
        self.hook = model.register_forward_pre_hook(self.add)

    def add(self, *_: object) -> None:
        self.passes += 1


@pytest.fixture(params=["builtin:bert", "builtin:vit"])
def counted(request: pytest.FixtureRequest) -> Iterator[tuple[Loaded, Count]]:
    loaded = load(request.param, device="cpu")
    count = Count(loaded.model)
    yield loaded, count
    count.hook.remove()


@pytest.mark.parametrize("shard_bytes", [1, 2**40], ids=["a shard for each input", "one shard"])
def test_a_capture_runs_each_batch_once_besides_its_trial(
    counted: tuple[Loaded, Count], tmp_path: Path, shard_bytes: int
) -> None:
    loaded, count = counted
    sees = "pixel_values" in str(loaded.model.main_input_name)
    dice = np.random.default_rng(0)
    pixels = dice.integers(0, 255, (3, 32, 32, 3), np.uint8)
    inputs = [Image.fromarray(one) for one in pixels] if sees else TEXTS
    atlas = aa.capture(
        (loaded.model, loaded.processor), inputs, path=tmp_path / "x.atlas", batch_size=1,
        shard_bytes=shard_bytes, progress=False,
    )  # fmt: skip
    assert len(atlas.manifest.shards) == (len(inputs) if shard_bytes == 1 else 1)
    assert count.passes == len(inputs) + TRIAL + (SURVEY if sees else 0)


def test_a_watched_pass_computes_the_logits_of_one_token_and_keeps_no_cache() -> None:
    loaded = load("builtin:gpt", device="cpu")
    rows: list[int] = []
    head = loaded.model.get_output_embeddings()
    hook = head.register_forward_hook(lambda _, __, logits: rows.append(logits.shape[1]))
    ids = loaded.tokenizer("Nobody asks for the logits.", return_tensors="pt")["input_ids"]
    observe(loaded.model, {"input_ids": ids}, "named", fast=True)
    hook.remove()
    assert rows == [1] and ids.shape[1] > 1
    assert without_logits(loaded.model) == {"logits_to_keep": 1, "use_cache": False}
