"""Do two models that read at the same time, each in a thread of its own, keep apart?

Every result must be that of a lone run, bit for bit and by the same way of watching.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import monotonic
from typing import Any

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaModel,
)

import attention_atlas as aa
from attention_atlas.models.load import load
from attention_atlas.page.hosts.app import make_app
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack
from tests.record.zoo import ZOO

ROUNDS = 4
WIDTH: dict[str, Any] = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 64,
}  # fmt: skip
INPUTS = [{"input_ids": torch.tensor([list(range(3, 3 + n))])} for n in (12, 5, 9)]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """A sum over several threads of torch may come out in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def gpt() -> Any:
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4)).eval()


def bert() -> Any:
    torch.manual_seed(1)
    return BertModel(BertConfig(**WIDTH)).eval()


def llama() -> Any:
    torch.manual_seed(2)
    return LlamaModel(LlamaConfig(**WIDTH, num_key_value_heads=2)).eval()


def by_the_name_eager() -> Any:
    return ZOO["DeepSeek-V3.2"].build()


Result = tuple[str, list[np.ndarray[Any, Any]]]


def reading(model: Any) -> Result:
    """The way that was taken, and every weight of every head."""
    atlas = aa.capture((model, None), INPUTS, progress=False)
    layers = [(tower.name, layer.layer) for tower in atlas.towers for layer in tower.layers]
    weights = [
        atlas.layer_weights(number, layer, tower)
        for number in range(len(INPUTS))
        for tower, layer in layers
    ]
    return atlas.receipt.how, weights


def at_once(*works: Callable[[], Any]) -> list[list[Any]]:
    """Each work in a thread of its own, again and again; gives the results of each."""
    start = Barrier(len(works))

    def often(work: Callable[[], Any]) -> list[Any]:
        start.wait()
        return [work() for _ in range(ROUNDS)]

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(often, works))


def assert_same(mine: Result, lone: Result) -> None:
    assert mine[0] == lone[0]
    for here, there in zip(mine[1], lone[1], strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize(
    ("first", "second"), [(gpt, bert), (gpt, llama), (llama, by_the_name_eager)]
)
@pytest.mark.filterwarnings("ignore")  # what the models themselves warn of
def test_two_models_captured_at_once_give_what_each_gives_alone(
    first: Callable[[], Any], second: Callable[[], Any]
) -> None:
    models = [first(), second()]
    alone = [reading(model) for model in models]
    found = at_once(*(lambda model=model: reading(model) for model in models))
    for results, lone in zip(found, alone, strict=True):
        for result in results:
            assert_same(result, lone)


@pytest.mark.full
def test_two_live_models_read_for_a_minute_what_each_reads_alone(tmp_path: Any) -> None:
    """As two pages of one server do that add text after text, each to an atlas of its own."""
    texts = ("The old doctor walks home because it is late.", "Who sold the bridge?")
    names = ("builtin:gpt", "builtin:bert")
    likes = [
        aa.capture(name, texts[:1], path=tmp_path / f"{name[8:]}.atlas", progress=False)
        for name in names
    ]
    models = [LiveModel(name) for name in names]

    def added(number: int, text: str) -> Result:
        atlas = models[number].read(likes[number], text)
        (tower,) = atlas.towers
        return atlas.receipt.how, [atlas.layer_weights(0, one.layer) for one in tower.layers]

    alone = [[added(number, text) for text in texts] for number in range(len(models))]
    start = Barrier(len(models))

    def often(number: int) -> int:
        start.wait()
        end, rounds = monotonic() + 60, 0
        while monotonic() < end:
            for text, lone in zip(texts, alone[number], strict=True):
                assert_same(added(number, text), lone)
            rounds += 1
        return rounds

    with ThreadPoolExecutor(len(models)) as threads:
        assert min(threads.map(often, range(len(models)))) >= ROUNDS


def test_one_model_captured_in_two_threads_gives_what_it_gives_alone() -> None:
    model = gpt()
    lone = reading(model)
    for results in at_once(*[lambda: reading(model)] * 2):
        for result in results:
            assert_same(result, lone)


@pytest.mark.filterwarnings("ignore")
def test_a_plain_pass_of_a_third_model_does_not_notice() -> None:
    """Eager, where an open door may stand in the very registry that the third model asks."""
    torch.manual_seed(3)
    third = BertModel(BertConfig(**WIDTH, attn_implementation="eager")).eval()
    recorded = by_the_name_eager()

    def plainly() -> torch.Tensor:
        with torch.no_grad():
            return torch.stack([third(**INPUTS[0]).last_hidden_state for _ in range(20)])

    lone = plainly()
    plain, _ = at_once(plainly, lambda: reading(recorded))
    assert all(torch.equal(outputs, lone) for outputs in plain)


def test_what_is_drawn_at_random_outside_is_as_if_nothing_had_been_captured() -> None:
    models = [gpt(), bert()]
    torch.manual_seed(5)
    np.random.seed(5)
    expected = torch.rand(3), np.random.rand(3)
    torch.manual_seed(5)
    np.random.seed(5)
    at_once(*(lambda model=model: reading(model) for model in models))
    np.testing.assert_array_equal(torch.rand(3), expected[0])
    np.testing.assert_array_equal(np.random.rand(3), expected[1])


def test_models_can_be_loaded_at_once() -> None:
    names = ("builtin:gpt", "builtin:bert")
    found = at_once(*(lambda name=name: load(name).model.state_dict() for name in names))
    for name, loads in zip(names, found, strict=True):
        lone = load(name).model.state_dict()
        for tensors in loads:
            assert tensors.keys() == lone.keys()
            assert all(torch.equal(tensor, lone[key]) for key, tensor in tensors.items())


def test_a_fresh_server_with_two_models_answers_texts_added_at_once(tmp_path: Any) -> None:
    text = "The old doctor walks home because it is late."
    names = ("builtin:gpt", "builtin:bert")
    atlases = [
        aa.capture(name, [text], path=tmp_path / f"{name[8:]}.atlas", progress=False)
        for name in names
    ]
    for _ in range(2):
        app = make_app(atlases, models=[LiveModel(name) for name in names])
        with TestClient(app, "http://127.0.0.1") as client:
            start = Barrier(len(names))

            def add(atlas: int, client: Any = client, start: Barrier = start) -> tuple[int, str]:
                start.wait()
                answer = client.post(f"/{atlas}/api/add", json={"text": "She was right."})
                return answer.status_code, str(unpack(answer.content).get("error", ""))

            with ThreadPoolExecutor(len(names)) as threads:
                answers = list(threads.map(add, range(len(names))))
        assert answers == [(200, ""), (200, "")]
