"""Whatever is sent to any route, the answer is a packet or a sentence of ours, never a failure."""

import random
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import attention_atlas as aa
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.hosts.app import make_app
from attention_atlas.page.live.actions import ACTIONS
from attention_atlas.page.live.model import LiveModel
from tests.page import hostile


@pytest.fixture
def client(gpt: aa.Atlas, bert: aa.Atlas, seq2seq: aa.Atlas, stand_in: Path) -> TestClient:
    gpt.layout("pca", progress=False)
    app = make_app([gpt, bert, seq2seq], models=[LiveModel("builtin:gpt"), None, None])
    return TestClient(app, base_url=hostile.HERE)


def test_hostile_requests_get_our_own_answers(client: TestClient) -> None:
    """Three hundred of them; `python -m tests.page.hostile` sends more."""
    counts = hostile.attack(client, random.Random(17), 300)
    asked = {word for word, _ in counts}
    assert {f"GET {word}" for word in PACKETS} <= asked
    assert {f"POST {name}" for name in ACTIONS} <= asked
    assert sum(count for (_, status), count in counts.items() if status == "200") > 30
    assert client.get("/api/about").status_code == 200
