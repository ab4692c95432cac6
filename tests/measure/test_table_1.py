"""The study's Table 1 for real models: the page of the docs says what transformers itself gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

import attention_atlas as aa
from attention_atlas.measure.importance import ROWS, importance_table
from attention_atlas.models.load import load
from docs.heads import SENTENCE, STUDY
from tests.places import minilm, smollm2
from tests.tolerance import STORED

PAGE = Path(__file__).parents[2] / "docs" / "importance.md"


def printed(title: str) -> dict[str, list[float]]:
    """A table of the page: column → its numbers."""
    part = PAGE.read_text(encoding="utf-8").split(f"## {title}")[1].split("##")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    names = [name.strip() for name in rows[0]]
    return {name: [float(row[at + 1]) for row in rows[1:]] for at, name in enumerate(names)}


def plain(name: str) -> tuple[Any, Any]:
    """Model and tokenizer as anyone would load them, with attention that can be read."""
    if name == "SmolLM2":
        folder, file = smollm2().rsplit("/", 1)
        network = AutoModelForCausalLM.from_pretrained(
            folder, gguf_file=file, dtype=torch.float32, attn_implementation="eager"
        )
        return network, AutoTokenizer.from_pretrained(folder, gguf_file=file)
    if name == "MiniLM":
        network = AutoModel.from_pretrained(minilm(), attn_implementation="eager")
        return network, AutoTokenizer.from_pretrained(minilm())
    loaded = load(name)
    loaded.model.set_attn_implementation("eager")
    return loaded.model, loaded.tokenizer


def table_1(largest: list[float]) -> list[float]:
    """n, mean, RI (divided by n), minimum, quartiles, maximum."""
    ordered = sorted(largest)
    mean = sum(ordered) / len(ordered)
    varies = sum((one - mean) ** 2 for one in ordered) / len(ordered)
    quarters = np.quantile(ordered, [0.25, 0.5, 0.75]).tolist()
    return [len(ordered), mean, varies**0.5, ordered[0], *quarters, ordered[-1]]


@pytest.mark.parametrize(
    "name",
    ["builtin:gpt", "builtin:bert", "MiniLM", pytest.param("SmolLM2", marks=pytest.mark.full)],
)
def test_the_printed_table_is_that_of_the_models_own_attention(name: str) -> None:
    network, tokenizer = plain(name)
    with torch.no_grad():
        given = network.eval()(**tokenizer(SENTENCE, return_tensors="pt"), output_attentions=True)
    heads = [head.numpy() for layer in given.attentions for head in layer[0]]
    causal = name in ("builtin:gpt", "SmolLM2")
    all_rows = table_1([float(head.max()) for head in heads])
    chosen = table_1([float(head[1 if causal else 0 :].max()) for head in heads])
    for title, expected in (("All rows", all_rows), ("Without rows", chosen)):
        shown = printed(title)[name]
        assert shown == pytest.approx(expected, abs=STORED)
        assert shown[:3] == pytest.approx(expected[:3], abs=1e-4)  # number, mean and RI
    if causal:
        assert all_rows[1:3] == pytest.approx([1, 0], abs=1e-6)
        assert chosen[2] > 0.05


@pytest.mark.full
def test_what_we_compute_today_is_what_the_page_prints() -> None:
    atlas = aa.capture("builtin:bert", SENTENCE, progress=False)
    made = importance_table(atlas.measure(progress=False))["all heads"]
    assert list(made.index) == list(ROWS)
    assert printed("All rows")["builtin:bert"] == pytest.approx(made.tolist(), abs=2e-6)


def test_the_studys_own_figures_are_printed_as_it_gives_them() -> None:
    shown = printed("The study's own figures")
    assert {name: pytest.approx(values) for name, values in STUDY.items()} == shown
