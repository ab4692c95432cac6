"""The tools suffice: questions of an agent are answered by scripted calls, without any model.

What is expected comes from transformers itself (its eager attention) and plain NumPy.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file

import attention_atlas as aa
from tests.atlases import OTHER, SENTENCE
from tests.page.agents.conftest import Agent

TASKS = json.loads(Path(__file__).with_name("tasks.json").read_text("utf-8"))
MODEL = f"{aa.__path__[0]}/models/builtin/gpt"
CLOSE = 2e-3  # stored weights are within 1e-3 of the model's, and answers have four digits


def looked_up(told: list[Any], path: str) -> Any:
    """Follows a path such as $1.links.0.key through the answers."""
    first, *rest = path.removeprefix("$").split(".")
    value = told[int(first)]
    for part in rest:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def solve(agent: Agent, task: dict[str, Any]) -> list[Any]:
    """Makes the calls of a task, each with what earlier ones answered; returns the answer."""
    told: list[Any] = []
    for tool, asked in task["calls"]:
        filled = {
            name: looked_up(told, value) if str(value).startswith("$") else value
            for name, value in asked.items()
        }
        told.append(agent.ask(tool, **filled))
    return [looked_up(told, path) for path in task["answer"]]


@cache
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(MODEL)


@cache
def attention(number: int) -> Any:
    """The weights (L, H, N, N) of an input, as transformers gives them."""
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, attn_implementation="eager")
    with torch.no_grad():
        ids = tokenizer()([SENTENCE, OTHER][number], return_tensors="pt")
        layers = model.eval()(**ids, output_attentions=True).attentions
    return torch.stack(layers)[:, 0].double().numpy()


def place(number: int, word: str) -> int:
    """The position of a word that is one token."""
    ids = tokenizer()([SENTENCE, OTHER][number])["input_ids"]
    return [tokenizer().decode([each]).strip() for each in ids].index(word)


def exact(answer: list[Any], atlas: aa.Atlas) -> None:
    receipt = json.loads((atlas.path / "atlas.json").read_text("utf-8"))["receipt"]
    worst = max(layer["weights_error"] for layer in receipt["layers"])
    assert answer == [worst <= receipt["bound"], pytest.approx(worst, rel=1e-3)]


def odd_word_out(answer: list[Any], _: aa.Atlas) -> None:
    first, second = ({token.strip("·") for token in tokens} for tokens in answer)
    assert first - second == set(SENTENCE[:-1].split()) - set(OTHER[:-1].split())


def where_does_it_look(answer: list[Any], _: aa.Atlas) -> None:
    row = attention(0)[1, 2, place(0, "tired")]
    row[0] = 0
    assert answer == [row.argmax(), pytest.approx(row.max(), abs=CLOSE)]


def strongest_link(answer: list[Any], _: aa.Atlas) -> None:
    weights = attention(1)[2, 1]
    query, key = np.unravel_index(weights.argmax(), weights.shape)
    assert answer == [query, key, pytest.approx(weights.max(), abs=CLOSE)]


def looked_at(answer: list[Any], _: aa.Atlas) -> None:
    assert sum(answer) == pytest.approx(attention(0)[0, 1][:, 3].sum(), abs=10 * CLOSE)


def previous_token(answer: list[Any], _: aa.Atlas) -> None:
    rows = [attention(number).diagonal(-1, 2, 3) for number in (0, 1)]  # (L, H, N-1)
    means = np.mean([each.mean(-1) for each in rows], 0)
    layer, head = np.unravel_index(means.argmax(), means.shape)
    assert answer == [f"L{layer}H{head}", pytest.approx(means.max(), abs=CLOSE)]


def every_because(answer: list[Any], _: aa.Atlas) -> None:
    seen = [int(attention(i)[3, 0, place(i, "because")].argmax()) for i in (0, 1)]
    assert answer == [2, *seen]


def near_on_the_map(answer: list[Any], atlas: aa.Atlas) -> None:
    tensors = load_file(atlas.path / "layouts" / "pca-2d.safetensors")
    heads = [f"L{layer}H{head}" for layer in range(6) for head in range(6)]
    row = heads.index("L0H2")
    low, high = tensors["decoder.box"][row]
    places = low + tensors["decoder.places"][row] / 65535 * (high - low)
    away = np.linalg.norm(places - places[5], axis=1)
    away[5] = np.inf
    nearest = int(away.argmin())
    queries = len(tensors["decoder.query_tokens"])
    both = np.concatenate([tensors["decoder.query_tokens"], tensors["decoder.key_tokens"]])
    token = int(both[nearest])
    length = attention(0).shape[-1]
    side = "query" if nearest < queries else "key"
    assert answer == [side, token // length, token % length]


def rank(answer: list[Any], _: aa.Atlas) -> None:
    def entropies(weights: Any) -> Any:
        rows = -(weights * np.log(np.clip(weights, 1e-12, None))).sum(-1)[..., 1:]
        return (rows / np.log(np.arange(2, weights.shape[-1] + 1))).mean(-1)  # (L, H)

    values = np.mean([entropies(attention(number)) for number in (0, 1)], 0)
    expected = 1 + int((values > values[4, 3]).sum())
    scores, heads = answer
    (entropy,) = [row for row in scores if row["name"] == "entropy"]
    assert entropy["rank"] == expected and entropy["of"] == 36
    assert entropy["value"] == pytest.approx(values[4, 3], abs=CLOSE)
    assert [line["head"] for line in heads].index("L4H3") == expected - 1


EXPECTED = {
    "exact": exact, "odd word out": odd_word_out, "where does it look": where_does_it_look,
    "strongest link": strongest_link, "looked at": looked_at, "previous token": previous_token,
    "every because": every_because, "near on the map": near_on_the_map, "rank": rank,
}  # fmt: skip


def test_every_task_has_an_expected_answer_and_every_reading_tool_is_used() -> None:
    assert {task["name"] for task in TASKS} == set(EXPECTED)
    used = {tool for task in TASKS for tool, _ in task["calls"]}
    assert used == {"about", "heads", "head", "inputs", "attention", "search", "map"}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["name"])
def test_a_task_is_solved_by_scripted_calls(
    agent: Agent, mapped_gpt: aa.Atlas, task: dict[str, Any]
) -> None:
    EXPECTED[task["name"]](solve(agent, task), mapped_gpt)
