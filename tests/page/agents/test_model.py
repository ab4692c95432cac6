"""With its model attached, an agent edits attention and tests claims, and gets receipts."""

import json
from collections.abc import Iterator

import pytest
import torch
import transformers

import attention_atlas as aa
from attention_atlas.page.agents.bench import AgentBench
from attention_atlas.page.agents.server import make_server
from attention_atlas.page.live.model import LiveModel
from tests.atlases import SENTENCE
from tests.page.agents.conftest import Agent, connected

MODEL = aa.__path__[0] + "/models/builtin/gpt"
CASES = [
    {"input": f"The {noun} said that ___ was tired.", "answer": "he", "wrong": "she",
     "words": {"noun": noun}}
    for noun in ("king", "queen", "man", "woman")
]  # fmt: skip
TEST = {
    "name": "noun", "cases": CASES, "edits": [{"edit": "mask", "heads": "all", "tokens": "{noun}"}],
    "expect": {"at most": 0.0}, "controls": {"heads": 0, "positions": 1},
}  # fmt: skip


@pytest.fixture(scope="module")
def editor(mapped_gpt: aa.Atlas) -> Iterator[Agent]:
    with connected(make_server(AgentBench(mapped_gpt, LiveModel("builtin:gpt")))) as connection:
        yield connection


@pytest.mark.full
def test_an_edit_gives_what_a_hook_of_torch_gives_and_its_receipt(editor: Agent) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    projection = model.transformer.h[1].attn.c_proj
    told = editor.ask("edit", edits=[{"edit": "ablate", "heads": ["L1"], "by": "zero"}])
    with torch.no_grad():
        ids = tokenizer(SENTENCE, return_tensors="pt")
        before = model(**ids).logits[0, -1].softmax(-1)
        hook = projection.register_forward_pre_hook(lambda _m, given: (torch.zeros_like(given[0]),))
        after = model(**ids).logits[0, -1].softmax(-1)
        hook.remove()
    assert len(json.dumps(told)) / 3 <= 4000  # tokens, as in test_tools
    (prediction,) = told["predictions"]
    likeliest = max(prediction["tokens"], key=lambda each: each["after"])
    assert likeliest["after"] == pytest.approx(float(after.max()), rel=1e-3)
    first = max(prediction["tokens"], key=lambda each: each["before"])
    assert first["before"] == pytest.approx(float(before.max()), rel=1e-3)
    assert told["receipt"]["holds"] and told["receipt"]["failed"] == []
    counts = [done for done, _ in editor.heard]
    assert len(counts) > 2 and counts == sorted(set(counts)) and counts[0] == 0
    row = editor.ask("attention", head="L2H0", input=told["edited"], token=3, limit=50)
    assert sum(link["weight"] for link in row["links"]) == pytest.approx(1, abs=1e-2)


def test_a_claim_is_tested_with_its_controls_and_counts_its_cases(editor: Agent) -> None:
    told = editor.ask("test", custom=TEST)
    assert len(json.dumps(told)) / 3 <= 4000  # tokens, as in test_tools
    assert told["verdict"] in ("holds", "fails", "undecided") and told["cases"] == 4
    assert [each["name"] for each in told["controls"]] == [
        "random heads", "random positions", "same answer",
    ]  # fmt: skip
    assert told["change"]["mean"] == pytest.approx(told["edited"] - told["plain"], abs=2e-3)
    assert editor.heard == [(done, 4) for done in range(5)]


def test_no_test_opens_a_file(editor: Agent) -> None:
    words = editor.refused("test", test="/etc/passwd")
    assert words.startswith("no shipped test is named '/etc/passwd'; there is bias")
    for text in ("/etc/passwd", "/etc/passwd ___", "notes.txt"):
        custom = {**TEST, "cases": [{**CASES[0], "input": text}]}
        assert "reads texts only" in editor.refused("test", custom=custom)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([{"edit": "explode"}], "no edit is called 'explode'"),
        ([{"edit": "ablate", "heads": ["L9H9"]}], "L9"),
        ([{"edit": "scale", "heads": ["L0H0"], "by": "much"}], "scale"),
        ([{"edit": "patch", "heads": ["L0H0"], "what": "output", "from": 99}], "no input 99"),
        ([], "at least 1 item"),
        ("all", "should be a valid list"),
    ],
)
def test_a_wrong_edit_ends_in_a_sentence(editor: Agent, edits: object, words: str) -> None:
    sentence = editor.refused("edit", edits=edits)
    assert words in sentence and "\n" not in sentence and len(sentence) <= 600
