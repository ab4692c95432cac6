"""What a page may have done: maps computed in the background, texts added to an open atlas."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import attention_atlas as aa
from attention_atlas.layout import chunk, device, run
from attention_atlas.names.errors import InputError, ModelError
from attention_atlas.page.hosts.app import make_app
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack
from tests import planted
from tests.token_columns import token_list
from tests.tolerance import reading_tolerance

TEXTS = [
    "The old doctor walks home because it is late.",
    "A cat sleeps on the warm stone near the door.",
    "Who sold the bridge, and to whom was it sold?",
    "She told Mary that Mary had been right all along.",
]
NEW = "The old cat told the doctor that it was late."


@pytest.fixture
def plain(tmp_path: Path) -> aa.Atlas:
    texts = planted.sentences(4)
    return planted.write(tmp_path / "x.atlas", texts, *planted.vectors(texts))


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    path = tmp_path_factory.mktemp("live") / "gpt.atlas"
    atlas = aa.capture("builtin:gpt", TEXTS, path=path, progress=False)
    atlas.layout("pca", progress=False)
    atlas.layout("umap", progress=False)
    return atlas


@pytest.fixture(scope="module")
def live(gpt: aa.Atlas) -> Answers:
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")])
    return answers


def told(answer: tuple[bytes, bool]) -> Any:
    packet, done = answer
    content = unpack(packet)
    assert done, content
    return content


def refused(answer: tuple[bytes, bool]) -> str:
    packet, done = answer
    assert not done
    return str(unpack(packet)["error"])


def ended(answers: Answers) -> Any:
    end = time.monotonic() + 120
    while (now := told(answers.packet("progress")))["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
    return now


# Maps ---------------------------------------------------------------------------------------------


def test_a_map_is_computed_in_the_background_and_then_told_of(plain: aa.Atlas) -> None:
    (answers,) = make_answers([plain])
    before = told(answers.packet("about"))
    assert before["can_compute"] and before["maps"] == []
    assert {(one["method"], one["dims"]) for one in before["estimates"]} == {
        (method, dims) for method in ("pca", "tsne", "umap") for dims in (2, 3)
    }
    assert all(one["seconds"] > 0 for one in before["estimates"])
    assert told(answers.perform("compute", {"method": "pca", "dims": 2}))["state"] == "running"
    end = ended(answers)
    assert (end["state"], end["map"], end["done"], end["total"]) == ("done", "pca-2d", 5, 5)
    assert [one["name"] for one in told(answers.packet("about"))["maps"]] == ["pca-2d"]
    assert told(answers.packet("map/pca-2d/decoder"))["places"].shape[0] == 5


def test_one_map_at_a_time_and_it_can_be_stopped_and_gone_on_with(
    plain: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "POINTS_AT_ONCE", 1)  # a chunk for each head
    real, made = chunk.make_chunk, []
    (answers,) = make_answers([plain])

    def second_waits(*asked: Any) -> Any:
        made.append(asked)
        if len(made) == 2:  # until the map is given up
            (ticket,) = answers.queue.lanes["maps"].running
            assert ticket.future.exception(120)
        return real(*asked)

    monkeypatch.setattr(run, "make_chunk", second_waits)
    told(answers.perform("compute", {"method": "pca", "dims": 2}))
    sentence = refused(answers.perform("compute", {"method": "umap", "dims": 2}))
    assert sentence == "pca-2d is being computed; wait for it or stop it first"
    while not told(answers.packet("progress"))["done"]:
        time.sleep(0.02)
    assert told(answers.packet("about"))["maps"] == []
    stopped = told(answers.perform("cancel", {}))
    assert (stopped["state"], stopped["done"]) == ("stopped", 1)
    told(answers.perform("compute", {"method": "pca", "dims": 2}))
    assert ended(answers)["state"] == "done"
    assert len(made) == 5, "what was done is not done again"


def test_what_goes_wrong_while_computing_is_told(
    plain: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise InputError("the disk is full")

    monkeypatch.setattr(run, "make_chunk", full)
    (answers,) = make_answers([plain])
    told(answers.perform("compute", {"method": "pca", "dims": 2}))
    end = ended(answers)
    assert (end["state"], end["error"]) == ("failed", "the disk is full")


def test_an_atlas_without_keys_offers_nothing(tmp_path: Path) -> None:
    texts = planted.sentences(2)
    bare = planted.write(tmp_path / "x.atlas", texts, *planted.vectors(texts), keep=("query",))
    (answers,) = make_answers([bare])
    about = told(answers.packet("about"))
    assert not about["can_compute"] and about["estimates"] == []
    assert "without queries and keys" in refused(
        answers.perform("compute", {"method": "pca", "dims": 2})
    )


@pytest.mark.parametrize(
    ("word", "body", "sentence"),
    [
        ("compute", {"method": "isomap", "dims": 2}, "no map is named isomap-2d; there is umap"),
        ("compute", {"method": "pca", "dims": 4}, "no map is named pca-4d"),
        ("compute", {"method": "pca"}, "compute lacks 'dims'"),
        ("compute", {"method": 3, "dims": 2}, "'method' of compute should be a valid string"),
        ("compute", {"method": "pca", "dims": True}, "'dims' of compute should be a valid integer"),
        ("compute", [1], "compute must be a JSON object"),
        ("compute", {"method": "pca", "dims": 2, "x": 1}, "nothing of compute is called 'x'"),
        ("add", {"text": "x"}, "there is no model to read new texts"),
        ("add", {"text": "x", "second": 3}, "'second' of add should be a valid string"),
        ("erase", {}, "no action is named 'erase'; there is compute, place, cancel, add"),
    ],
)
def test_bad_actions_are_refused_in_a_sentence(
    plain: aa.Atlas, word: str, body: Any, sentence: str
) -> None:
    (answers,) = make_answers([plain])
    assert sentence in refused(answers.perform(word, body))


def test_plain_attention_can_have_nothing_done() -> None:
    view = aa.head_view(np.full((1, 1, 2, 2), 0.5), ["a", "b"])
    (answers,) = make_answers([view.subject])
    assert "plain attention has no actions" in refused(answers.perform("add", {"text": "x"}))


# Texts --------------------------------------------------------------------------------------------


def test_a_new_text_is_read_and_answers_like_any_other_input(gpt: aa.Atlas, live: Answers) -> None:
    added = told(live.perform("add", {"text": NEW}))
    number = added["input"]
    assert number >= len(gpt) and added["seconds"] < 60
    about = told(live.packet("about"))
    assert about["can_add"] and number in about["added"]
    assert about["inputs"][number]["label"] == NEW
    info = told(live.packet(f"input/{number}"))
    assert "".join(token["text"] for token in token_list(info["streams"][0])).endswith("late.")
    alone = aa.capture("builtin:gpt", NEW, progress=False)
    np.testing.assert_allclose(
        told(live.packet(f"rows/{number}/L1H2"))["weights"],
        alone.weights(0, "L1H2"),
        rtol=0,
        atol=reading_tolerance(alone, 0, "L1H2"),
    )
    assert told(live.packet(f"edges/{number}/decoder"))["input"] == number
    assert told(live.packet(f"vectors/{number}/L1H2"))["query"].shape[0] == len(alone.tokens(0))
    assert len(aa.open(gpt.path)) == len(TEXTS), "the folder itself does not change"


@pytest.mark.full
@pytest.mark.parametrize("map", ["pca-2d", "umap-2d"])
def test_an_old_text_added_again_lies_where_it_lay(gpt: aa.Atlas, live: Answers, map: str) -> None:
    """A text of the atlas, so that we know where its points belong."""
    number = told(live.perform("add", {"text": TEXTS[1]}))["input"]
    extra = told(live.packet(f"extra/{map}/decoder/{number}"))
    laid, points = (
        told(live.packet(f"map/{map}/decoder")),
        told(live.packet(f"points/{map}/decoder")),
    )
    mine = points["input"] == 1
    apart = np.linalg.norm(extra["places"] - laid["places"][:, mine] / 65535, axis=2)
    assert np.median(apart) < (1e-3 if map == "pca-2d" else 0.08)
    assert extra["points"]["queries"] == mine.sum() / 2
    texts = [extra["points"]["texts"][one] for one in extra["points"]["text"]]
    assert texts == [points["texts"][one] for one in points["text"][mine]]
    for new, old in zip(extra["points"]["columns"], points["columns"], strict=True):
        np.testing.assert_array_equal(new["values"], old["values"][mine])
        assert new.get("names") == old.get("names")
    assert (extra["points"]["token"] >= gpt.manifest.tokens).all()
    assert (extra["points"]["input"] == number).all()


@pytest.mark.full
def test_lengths_of_new_vectors_are_told(gpt: aa.Atlas, live: Answers) -> None:
    number = told(live.perform("add", {"text": TEXTS[1]}))["input"]
    norms = told(live.packet(f"extra/pca-2d/decoder/{number}"))["norms"]
    longest = np.linalg.norm(gpt.keys("L2H1", 1), axis=1).max()
    heads = told(live.packet("map/pca-2d/decoder"))["heads"]
    assert norms["high"][heads.index("L2H1"), 1] == pytest.approx(longest, rel=2e-3)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"text": "  "}, "there is no text to add"),
        ({"text": "a" * 30_000}, "a text of 30000 characters is too long"),
        ({"text": "word " * 3_000}, "tokens"),
    ],
)
def test_a_text_that_cannot_be_added_says_why(live: Answers, body: Any, sentence: str) -> None:
    before = told(live.packet("about"))["added"]
    assert sentence in refused(live.perform("add", body))
    assert told(live.packet("about"))["added"] == before


def test_an_input_of_the_map_is_no_extra(live: Answers) -> None:
    for number in ("0", "999", "x"):
        assert live.packet(f"extra/pca-2d/decoder/{number}")[1] is False


@pytest.mark.full
def test_another_model_is_found_out(gpt: aa.Atlas) -> None:
    LiveModel("builtin:gpt").check(gpt)
    with pytest.raises(ModelError, match="builtin:bert is not the model of this atlas"):
        LiveModel("builtin:bert").check(gpt)


def test_the_same_architecture_with_other_weights_is_found_out(gpt: aa.Atlas) -> None:
    from attention_atlas.models.load import load

    loaded = load("builtin:gpt")
    loaded.model.transformer.h[2].attn.c_attn.weight.data *= 1.5
    with pytest.raises(ModelError, match="layer 2 of decoder is off by"):
        LiveModel((loaded.model, loaded.processor)).check(gpt)


# Over HTTP ---------------------------------------------------------------------------------------


@pytest.fixture
def client(plain: aa.Atlas, gpt: aa.Atlas) -> TestClient:
    return TestClient(make_app([plain, gpt]), base_url="http://127.0.0.1:8642")


@pytest.mark.full
def test_two_atlases_never_mix(client: TestClient) -> None:
    first, second = (unpack(client.get(f"{at}/api/about").content) for at in ("", "/1"))
    assert (first["model"], second["model"]) == ("planted", "builtin:gpt")
    assert [one["address"] for one in first["atlases"]] == ["1/"]
    assert [one["address"] for one in second["atlases"]] == ["../"]
    assert client.get("/0/", follow_redirects=False).headers["location"] == "../"
    assert client.get("/api/map/pca-2d/decoder").status_code == 404
    assert client.get("/1/api/map/pca-2d/decoder").status_code == 200
    assert client.post("/api/compute", json={"method": "pca", "dims": 2}).status_code == 200
    while unpack(client.get("/api/progress").content)["state"] == "running":
        time.sleep(0.02)
    assert unpack(client.get("/1/api/progress").content)["state"] == "idle"
    mine, other = (
        unpack(client.get(f"{at}/api/points/pca-2d/decoder").content) for at in ("", "/1")
    )
    assert "<s>" in mine["texts"] and "<s>" not in other["texts"]
    assert client.post("/7/api/cancel", json={}).status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://127.0.0.1:8642"}, 200),
        ({"Origin": "http://127.0.0.1:8642", "Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content-Type": "text/plain"}, 400),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 400),
    ],
)
def test_only_our_own_page_has_things_done(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    sent = {"Content-Type": "application/json", **headers}
    answer = client.post("/api/cancel", content=b"{}", headers=sent)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'"' + b"x" * 300_000 + b'"'])
def test_what_is_no_json_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/add", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert client.get("/api/about").status_code == 200


def test_the_notebook_asks_by_message(plain: aa.Atlas, stand_in: Path) -> None:
    from attention_atlas.page.hosts.widget import AtlasWidget

    widget, sent = AtlasWidget(plain, {}, {}), []
    widget.send = lambda message, buffers: sent.append((message, unpack(buffers[0])))
    widget._answer(
        None, {"kind": "do", "id": "1", "path": "compute", "body": {"method": "pca", "dims": 2}}, []
    )
    assert sent[0][0] == {"kind": "answer", "id": "1"} and sent[0][1]["state"] == "running"
    while sent[-1][1].get("state") == "running":
        widget._answer(None, {"kind": "get", "id": "2", "path": "progress"}, [])
    assert sent[-1][1]["state"] == "done"
    widget._answer(None, {"kind": "do", "id": "3", "path": "add", "body": {"text": "x"}}, [])
    assert "there is no model" in sent[-1][1]["error"]
    widget._answer(None, {"kind": "erase", "id": "4"}, [])
    assert sent[-1][0]["id"] == "3"
