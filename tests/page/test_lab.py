"""What the Lab answers: an input before and after edits, as the model itself gives it."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

import attention_atlas as aa
from attention_atlas.edits.edit import Edit
from attention_atlas.edits.prove import receipt as prove
from attention_atlas.edits.prove.case import Case
from attention_atlas.edits.prove.found import Found
from attention_atlas.edits.prove.receipt import check_edits
from attention_atlas.models.load import load
from attention_atlas.page.answers import edited as kept
from attention_atlas.page.hosts.app import make_app
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.lab_input import LabInput
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.packing import unpack
from tests.tolerance import STORED, chain_tolerance, reading_tolerance, sum_tolerance, unit

TEXTS = [
    "The doctor asked the nurse a question. She",
    "A cat sleeps on the warm stone near the door.",
    "Who sold the bridge, and to whom was it sold?",
]
ABLATE = aa.ablate("L4H5").to_json()
HALF = 24


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    path = tmp_path_factory.mktemp("lab") / "gpt.atlas"
    return aa.capture("builtin:gpt", TEXTS, path=path, progress=False)


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


def edit(answers: Answers, *edits: Mapping[str, Any], input: int = 0, **more: Any) -> Any:
    return told(answers.perform("edit", {"input": input, "edits": list(edits), **more}))


def probabilities(loaded: Any, tensors: Any, *edits: Any) -> tuple[Any, float]:
    """What the model itself gives inside `aa.edit`, (N, vocabulary), and the bound of two runs.

    Logits of two float32 runs that are off by δ give probabilities that are off by at most δ / 2.
    """
    with torch.no_grad(), aa.edit(loaded, edits):
        logits = loaded.model(**tensors).logits[0].double()
    config = loaded.model.config
    bound = chain_tolerance(logits.numpy(), config.num_hidden_layers, config.hidden_size)
    return logits.softmax(-1).numpy(), bound / 2


def of_gpt(text: str, *edits: Any) -> tuple[Any, float]:
    gpt = load("builtin:gpt")
    return probabilities(gpt, gpt.tokenizer(text, return_tensors="pt"), *edits)


EDITS: dict[str, Edit] = {
    "ablate": aa.ablate("L4H5"),
    "scale": aa.scale(["L0H1", "L3H2"], 3.0),
    "mask": aa.mask("L1H2", tokens=[0]),
    "pattern": aa.pattern("L2H1", "even"),
    "neuron": aa.neuron("L1H0", "key", 3, scale=4.0),
    "patch": aa.patch("L2H3", "query", from_="The nurse asked the doctor a question. He"),
}


@pytest.mark.parametrize("name", EDITS)
def test_predictions_are_those_of_the_model_itself(live: Answers, name: str) -> None:
    answer = edit(live, EDITS[name].to_json())
    plain, close = of_gpt(TEXTS[0])
    changed, _ = of_gpt(TEXTS[0], EDITS[name])
    assert answer["predicts"] == "next" and answer["notes"] == []
    (prediction,) = answer["predictions"]
    assert prediction["position"] == len(plain) - 1
    shown = {token["id"]: token for token in prediction["tokens"]}
    assert {*plain[-1].argsort()[-10:], *changed[-1].argsort()[-10:]} == set(shown)
    for number, token in shown.items():
        assert token["before"] == pytest.approx(plain[-1][number], abs=close)
        assert token["after"] == pytest.approx(changed[-1][number], abs=close)


@pytest.mark.full
@pytest.mark.parametrize("name", EDITS)
def test_edited_attention_is_that_of_an_edited_capture(
    live: Answers, gpt: aa.Atlas, name: str
) -> None:
    answer = edit(live, EDITS[name].to_json())
    alone = aa.capture("builtin:gpt", TEXTS[:1], edits=[EDITS[name]], progress=False)
    for tower_layer in (2, 4, 5):
        mine = told(live.packet(f"layer/{answer['input']}/decoder/{tower_layer}"))["weights"]
        np.testing.assert_allclose(mine, alone.layer_weights(0, tower_layer), rtol=0, atol=STORED)
    vectors = told(live.packet(f"vectors/{answer['input']}/L1H0"))
    key = vectors["key"]
    bound = unit(np.float16) * np.abs(key).max() + chain_tolerance(key, 2, key.shape[1] * 6)
    np.testing.assert_allclose(key, alone.keys("L1H0", 0), rtol=0, atol=bound)


def test_the_change_of_each_head_is_the_mean_total_variation_of_its_rows(live: Answers) -> None:
    answer = edit(live, EDITS["scale"].to_json())
    change = {entry["head"]: entry["attention"] for entry in answer["change"]}
    assert len(change) == len({*change}) and all(0 <= value <= 1 for value in change.values())
    for head in ("L0H0", "L1H3", "L5H0"):
        before, after = (
            told(live.packet(f"rows/{number}/{head}"))["weights"].astype(np.float64)
            for number in (answer["plain"], answer["input"])
        )
        rows = np.abs(before - after).sum(1) / 2
        bound = sum_tolerance(before) + unit()
        assert change[head] == pytest.approx(rows.mean(), abs=bound)
    assert change["L0H0"] == 0 and change["L5H0"] > 0, "what comes before the edit is as it was"


def test_the_plain_input_of_the_lab_is_the_stored_one(live: Answers, gpt: aa.Atlas) -> None:
    answer = edit(live, ABLATE, input=1)
    for head in ("L0H1", "L5H5"):
        mine = told(live.packet(f"rows/{answer['plain']}/{head}"))["weights"]
        bound = STORED + reading_tolerance(gpt, 1, head)
        np.testing.assert_allclose(mine, gpt.weights(1, head), rtol=0, atol=bound)


def test_an_edited_input_has_the_tokens_of_the_plain_one_and_is_not_listed(live: Answers) -> None:
    answer = edit(live, ABLATE)
    number = answer["input"]
    mine, plain = told(live.packet(f"input/{number}")), told(live.packet("input/0"))
    np.testing.assert_equal(mine["streams"], plain["streams"])
    assert mine["text"] == plain["text"]
    assert told(live.packet(f"edges/{number}/decoder"))["input"] == number
    about = told(live.packet("about"))
    assert number not in [line["number"] for line in about["inputs"]]
    assert (about["can_edit"], about["no_edits"], about["predicts"]) == (True, "", "next")


@pytest.mark.full
def test_an_edited_input_has_places_on_a_map(gpt: aa.Atlas, live: Answers) -> None:
    gpt.layout("pca", progress=False)
    answer = edit(live, aa.neuron("L1H0", "query", 0, 9.0).to_json())
    plain, mine = (
        told(live.packet(f"extra/pca-2d/decoder/{answer[name]}")) for name in ("plain", "input")
    )
    heads = told(live.packet("map/pca-2d/decoder"))["heads"]
    moved = np.abs(mine["places"] - plain["places"]).max((1, 2))
    assert moved[heads.index("L0H0")] == 0 and moved[heads.index("L1H0")] > 0
    assert (mine["points"]["input"] == answer["input"]).all()


def test_no_edits_change_nothing(live: Answers) -> None:
    answer = edit(live)
    assert answer["input"] == answer["plain"] and answer["edits"] == []
    assert {entry["attention"] for entry in answer["change"]} == {0.0}
    assert all(token["before"] == token["after"] for token in answer["predictions"][0]["tokens"])


def test_the_prediction_at_a_token_can_be_asked_for(live: Answers) -> None:
    answer = edit(live, ABLATE, at=3)
    plain, close = of_gpt(TEXTS[0])
    changed, _ = of_gpt(TEXTS[0], aa.ablate("L4H5"))
    first = answer["predictions"][0]["tokens"][0]
    assert answer["predictions"][0]["position"] == 3
    assert answer["predictions"][0]["label"].startswith("after “")
    assert first["before"] == pytest.approx(plain[3][first["id"]], abs=close)
    assert first["after"] == pytest.approx(changed[3][first["id"]], abs=close)


def test_generated_text_is_that_of_the_model_itself(live: Answers) -> None:
    new, cut = 8, aa.scale("L3", 0.0)
    text = edit(live, cut.to_json(), generate=new)["text"]
    gpt = load("builtin:gpt")
    ids = gpt.tokenizer(TEXTS[0], return_tensors="pt")

    def written() -> str:
        out = gpt.model.generate(**ids, max_new_tokens=new, do_sample=False)
        return str(
            gpt.tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
        )

    assert text["before"] == written()
    with aa.edit(gpt, cut):
        assert text["after"] == written()
    same = text["same"]
    assert text["before"][:same] == text["after"][:same]
    assert text["before"][same : same + 1] != text["after"][same : same + 1]


# What is said of edits ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (aa.ablate("L4H5"), "what L4H5 moves is zero"),
        (aa.ablate(["L4H5", "L4H4"]), "what L4H4 and L4H5 move is zero"),
        (aa.ablate("L4H5", by="mean"), "what L4H5 moves is its mean over 2 other inputs"),
        (aa.scale("all", 0.5), "what all heads move is multiplied by 0.5"),
        (aa.pattern("L4", "self"), "the weights of all heads of L4 are on the token itself"),
        (aa.scale("L4H5", 0.5), "what L4H5 moves is multiplied by 0.5"),
        (aa.mask("L3H2", token=1), "L3H2 cannot see token 1 “The”"),
        (aa.pattern("L2H1", "previous"), "the weights of L2H1 are on the previous token"),
        (aa.neuron("L2H1", "query", 3, 0.0), "neuron 3 of the query of L2H1 is set to 0"),
        (aa.ablate("L4H5", positions=[1]), "what L4H5 moves is zero, at token 1"),
    ],
)
def test_each_edit_is_said_in_a_sentence(live: Answers, given: Edit, sentence: str) -> None:
    (done,) = edit(live, given.to_json())["edits"]
    assert done["sentence"].startswith(sentence)
    if given.heads not in (("all",), ("L4",)):
        assert done["touches"] == sorted(given.heads)


def test_a_patch_says_where_it_takes_from(live: Answers) -> None:
    raw = {"edit": "patch", "heads": ["L2H1"], "what": "output", "from": 0}
    (done,) = edit(live, raw)["edits"]
    assert done["sentence"] == "the output of L2H1 is that of input 0"
    assert edit(live, raw)["predictions"][0]["tokens"][0]["after"] > 0


def test_a_head_that_takes_from_its_own_input_changes_nothing(live: Answers) -> None:
    raw = {"edit": "patch", "heads": ["L2H1"], "what": "output", "from": [0]}
    assert {entry["attention"] for entry in edit(live, raw)["change"]} == {0.0}


def test_an_edit_for_other_inputs_says_so(live: Answers) -> None:
    answer = edit(live, aa.ablate("L4H5", inputs=[2]).to_json())
    assert answer["notes"] == ["edit 1 is not for this input"]
    assert {entry["attention"] for entry in answer["change"]} == {0.0}


# What runs ----------------------------------------------------------------------------------------


def test_an_edit_runs_the_edited_layer_and_those_after_it_alone(gpt: aa.Atlas) -> None:
    loaded = load("builtin:gpt")
    (answers,) = make_answers([gpt], [LiveModel(loaded.model, loaded.processor)])
    edit(answers, ABLATE)
    ran: list[int] = []
    for number, block in enumerate(loaded.model.transformer.h):
        block.attn.register_forward_hook(lambda *_, number=number: ran.append(number))
    edit(answers, aa.scale("L4H1", 0.5).to_json())
    assert ran == list(range(4, len(loaded.model.transformer.h)))


# Copying ------------------------------------------------------------------------------------------


@pytest.mark.full
def test_without_its_induction_head_the_model_no_longer_copies_as_the_lab_shows() -> None:
    """Random tokens twice: in the second copy the next token is known, unless L4H5 is ablated."""
    loaded = load("builtin:gpt")
    dice = torch.Generator().manual_seed(0)
    once = torch.randint(300, loaded.model.config.vocab_size, (1, HALF), generator=dice)
    ids = torch.cat([once, once], 1)
    atlas = aa.capture(loaded.model, [{"input_ids": ids}], loaded.processor, progress=False)
    (answers,) = make_answers([atlas], [LiveModel(loaded.model, loaded.processor)])
    before: list[float] = []
    after: dict[str, list[float]] = {"L4H5": [], "L4H0": []}
    for position in range(HALF + 4, 2 * HALF - 1, 4):
        following = int(ids[0, position + 1])
        for head, found in after.items():
            answer = edit(answers, aa.ablate(head).to_json(), at=position)
            known = {token["id"]: token for token in answer["predictions"][0]["tokens"]}
            token = known.get(following, {"before": 0.0, "after": 0.0})
            before.append(token["before"])
            found.append(token["after"])
    assert np.mean(before) > 0.8, "it copies"
    assert np.mean(after["L4H5"]) < 0.2, "and no longer does"
    assert np.mean(after["L4H0"]) > 0.8, "another head of the layer is not what copies"


# Several at once ----------------------------------------------------------------------------------


def at_once(*works: Callable[[], Any]) -> list[Any]:
    answers: list[Any] = [None] * len(works)

    def run(place: int, work: Callable[[], Any]) -> None:
        answers[place] = work()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_two_clients_that_edit_at_once_do_not_mix(live: Answers) -> None:
    asked = [
        (0, aa.ablate("L4H5")), (1, aa.pattern("L2H1", "even")), (0, aa.scale("L0", 0.0)),
        (1, aa.mask("L1", token=0)), (2, aa.ablate("L0H0")), (0, aa.ablate("L4H5")),
    ]  # fmt: skip
    alone = [edit(live, given.to_json(), input=number) for number, given in asked]
    together = at_once(
        *(lambda n=number, g=given: edit(live, g.to_json(), input=n) for number, given in asked)
    )
    for mine, expected in zip(together, alone, strict=True):
        assert mine["predictions"] == expected["predictions"]
        assert mine["change"] == expected["change"]
    assert len({answer["input"] for answer in together}) == len(asked)


def test_packets_are_answered_while_an_edit_runs(
    live: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, may_end, real = threading.Event(), threading.Event(), LabInput.edit

    def slow(self: LabInput, asked: Any) -> Any:
        running.set()
        assert may_end.wait(60)
        return real(self, asked)

    monkeypatch.setattr(LabInput, "edit", slow)
    thread = threading.Thread(target=edit, args=[live, ABLATE])
    thread.start()
    assert running.wait(60)
    assert told(live.packet("about"))["can_edit"]
    assert told(live.packet("edges/2/decoder"))["input"] == 2
    may_end.set()
    thread.join()


def test_an_edit_that_is_cancelled_stops_at_the_next_layer(gpt: aa.Atlas) -> None:
    model, body = LiveModel("builtin:gpt"), {"input": 1, "edits": [ABLATE]}
    (answers,) = make_answers([gpt], [model])
    with model.held() as loaded:
        layers = next(x for x in loaded.model.modules() if isinstance(x, torch.nn.ModuleList))
    assert len(layers) == 6
    ran: list[int] = []
    going = threading.Event()

    def pass_by(number: int) -> None:
        ran.append(number)
        if number == 2 and going.wait(10):
            ticket.give_up()

    hooks = [
        layer.register_forward_pre_hook(lambda *_, number=number: pass_by(number))
        for number, layer in enumerate(layers)
    ]
    ticket = answers.queue.enter("model", lambda: answers.perform("edit", body))
    going.set()
    with pytest.raises(aa.AtlasError, match="cancelled"):
        ticket.future.result(30)
    answers.queue.close()
    assert ran == [0, 1, 2]
    for hook in hooks:
        hook.remove()
    assert not any(layer._forward_pre_hooks for layer in layers)
    after, (other,) = told(answers.perform("edit", body)), make_answers([gpt], [model])
    assert after["change"] == told(other.perform("edit", body))["change"]


def test_only_the_latest_edited_inputs_are_kept(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "KEPT", 3)
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")])
    first = edit(answers, ABLATE)["input"]
    for factor in range(4):
        latest = edit(answers, aa.scale("L0H0", factor).to_json())
    sentence = refused(answers.packet(f"layer/{first}/decoder/3"))
    assert sentence == "this edited input is no longer kept; apply the edits again"
    assert told(answers.packet(f"input/{latest['input']}"))["number"] == latest["input"]
    assert told(answers.packet(f"rows/{latest['plain']}/L0H0"))["weights"].shape[0] > 3


# The receipt --------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_edit_receipt_is_that_of_check_and_is_made_once(live: Answers) -> None:
    end = time.monotonic() + 300
    while not (proofs := told(live.packet("edit_receipt")))["done"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert proofs["holds"] and proofs["line"].startswith("edits are as asked for (")
    expected = check_edits("builtin:gpt", TEXTS[:1])
    assert [part["name"] for part in proofs["parts"]] == [each.name for each in expected.checks]
    assert all(part["holds"] for part in proofs["parts"])
    assert told(live.packet("edit_receipt")) == proofs


def test_an_edit_does_not_wait_for_the_receipt(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipt is held up between two passes; an edit is answered meanwhile."""
    running, may_end = threading.Event(), threading.Event()

    def slow(_case: Case) -> Found:
        running.set()
        assert may_end.wait(60)
        return Found(0.0, 0.0)

    monkeypatch.setattr(prove, "CHECKS", {"slow": slow})
    monkeypatch.setattr(prove, "no_ops", lambda _case: {})
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")])
    told(answers.packet("edit_receipt"))
    assert running.wait(60)
    assert edit(answers, ABLATE)["predicts"] == "next"
    assert not told(answers.packet("edit_receipt"))["done"]
    may_end.set()


# Bad input ----------------------------------------------------------------------------------------


def test_without_a_model_the_lab_says_how_to_attach_one(gpt: aa.Atlas) -> None:
    (answers,) = make_answers([gpt])
    about = told(answers.packet("about"))
    assert not about["can_edit"]
    for sentence in (
        about["no_edits"],
        refused(answers.perform("edit", {"input": 0, "edits": [ABLATE]})),
        refused(answers.packet("edit_receipt")),
    ):
        assert "attention-atlas serve x.atlas --model MODEL" in sentence


BAD: dict[str, tuple[Any, str]] = {
    "no head": ({"edit": "ablate", "heads": ["L9H0"]}, "there is no head L9H0; decoder has layers"),
    "no name": ({"edit": "ablate", "heads": ["5.1"]}, "no head is named '5.1'"),
    "a number as heads": ({"edit": "ablate", "heads": 5}, "heads is 5 (int); give a list"),
    "a long name": ({"edit": "ablate", "heads": ["L" + "9" * 5000 + "H0"]}, "cannot run with"),
    "no kind": ({"heads": ["L0H0"]}, "no edit is called 'None'; there are ablate"),
    "unknown kind": ({"edit": "explode", "heads": ["L0H0"]}, "no edit is called 'explode'"),
    "a list as kind": ({"edit": [], "heads": ["L0H0"]}, "no edit is called '[]'"),
    "unknown field": ({"edit": "ablate", "heads": ["L0H0"], "x": 1}, "no edit of kind ablate"),
    "uneven pattern": (
        {"edit": "pattern", "heads": ["L0H0"], "pattern": [[0.5, 0.2], [0.5, 0.5]]},
        "row 0 of the pattern sums to 0.7",
    ),
    "ragged pattern": (
        {"edit": "pattern", "heads": ["L0H0"], "pattern": [[1.0], [0.5, 0.5]]},
        "(list); give rows of weights",
    ),
    "small pattern": (
        {"edit": "pattern", "heads": ["L0H0"], "pattern": [[1.0, 0.0], [0.5, 0.5]]},
        "the pattern is 2 × 2 and the input has",
    ),
    "other length": (
        {"edit": "patch", "heads": ["L0H0"], "what": "output", "from": "A cat."},
        "say which correspond: align",
    ),
    "no such input": (
        {"edit": "patch", "heads": ["L0H0"], "what": "output", "from": 77},
        "there is no input 77 to take from; there are 0 to 2",
    ),
    "a path stays a text": (
        {"edit": "patch", "heads": ["L0H0"], "what": "output", "from": __file__},
        "say which correspond: align",
    ),
    "from nothing": ({"edit": "patch", "heads": ["L0H0"], "from": {"a": 1}}, "is no input"),
    "from too many": ({"edit": "ablate", "heads": ["L0H0"], "by": "mean", "from": ["a"] * 999},
                      "an edit takes from 999 inputs; give 1 to 8"),
    "huge scale": ({"edit": "scale", "heads": ["all"], "by": 1e300}, "are not finite"),
    "huge position": (
        {"edit": "neuron", "heads": ["L0H0"], "side": "key", "index": 10**30, "value": 1.0},
        "was given; count from zero to",
    ),
    "huge window": (
        {"edit": "pattern", "heads": ["L0H0"], "pattern": "window", "recent": 10**30},
        "cannot run with these edits",
    ),
    "many positions": (
        {"edit": "ablate", "heads": ["all"], "positions": [1] * 30_000},
        "positions of an edit lists 30000 tokens and the input has",
    ),
    "words as positions": ({"edit": "ablate", "heads": ["L0H0"], "positions": ["x"]}, "give a who"),
    "an odd seed": (
        {"edit": "ablate", "heads": ["L0H0"], "by": "resample", "seed": -1},
        "cannot run with these edits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_edit_is_refused_in_one_sentence(live: Answers, name: str) -> None:
    raw, sentence = BAD[name]
    said = refused(live.perform("edit", {"input": 0, "edits": [raw]}))
    assert sentence in said and "\n" not in said and len(said) <= 600


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"input": 99, "edits": []}, "there is no input 99; there are 0 to 2"),
        ({"input": kept.FIRST, "edits": []}, "there is no input 100000000; there are 0 to 2"),
        ({"input": 0}, "edit lacks 'edits'"),
        ({"input": 0, "edits": {}}, "'edits' of edit"),
        ({"input": 0, "edits": [3]}, "'edits.0' of edit"),
        ({"input": 0, "edits": [ABLATE] * 10_000}, "10000 edits were sent; send at most 100"),
        ({"input": 0, "edits": [{**ABLATE, "by": float("nan")}]}, "cannot be read as JSON"),
        ({"input": 0, "edits": [], "at": 99}, "there is no token 99; the input has tokens 0 to"),
        ({"input": 0, "edits": [], "generate": 10**9}, "ask for 0 to 200"),
        ({"input": 0, "edits": [], "generate": -1}, "ask for 0 to 200"),
    ],
)
def test_a_bad_request_is_refused_in_one_sentence(live: Answers, body: Any, sentence: str) -> None:
    said = refused(live.perform("edit", body))
    assert sentence in said and "\n" not in said


@pytest.mark.full
def test_thirty_thousand_lines_are_masked_without_a_freeze(live: Answers) -> None:
    edges = [[query, 0] for query in range(1, 10)] * 3_333
    began = time.monotonic()
    edit(live, {"edit": "mask", "heads": ["all"], "edges": edges})
    assert time.monotonic() - began < 30


def test_hostile_json_over_http_is_refused_and_the_server_goes_on(
    gpt: aa.Atlas, stand_in: Path
) -> None:
    client = TestClient(
        make_app([gpt], models=[LiveModel("builtin:gpt")]), base_url="http://127.0.0.1"
    )
    deep = '{"input": 0, "edits": [' + '{"a":' * 5_000 + "1" + "}" * 5_000 + "]}"
    for content in ('{"input": 0, "edits": [{"edit": "scale", "by": NaN}]}', deep, "[" * 90_000):
        answer = client.post(
            "/api/edit", content=content, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code in (400, 404)
    good = client.post("/api/edit", json={"input": 0, "edits": [ABLATE]})
    assert good.status_code == 200 and unpack(good.content)["predicts"] == "next"


def test_another_model_is_refused(gpt: aa.Atlas) -> None:
    loaded = load("builtin:gpt")
    with torch.no_grad():
        loaded.model.transformer.h[0].attn.c_attn.weight.mul_(1.5)
    (answers,) = make_answers([gpt], [LiveModel(loaded.model, loaded.processor)])
    said = refused(answers.perform("edit", {"input": 0, "edits": [ABLATE]}))
    assert "is not the model of this atlas" in said


# In a notebook ------------------------------------------------------------------------------------


def test_the_widget_sends_the_same_action(gpt: aa.Atlas, stand_in: Path) -> None:
    loaded = load("builtin:gpt")
    widget, sent = aa.head_view(gpt, model=(loaded.model, loaded.processor)).widget, []
    widget.send = lambda message, buffers: sent.append((message, unpack(buffers[0])))
    body = {"input": 0, "edits": [ABLATE]}
    widget._answer(None, {"kind": "do", "id": "1", "path": "edit", "body": body}, [])
    ((message, answer),) = sent
    assert message == {"kind": "answer", "id": "1"}
    assert answer["edits"][0]["sentence"] == "what L4H5 moves is zero"


def test_a_view_keeps_its_edits_in_its_picks(gpt: aa.Atlas) -> None:
    view = aa.head_view(gpt)
    view.picks = {"edits": [{"on": True, "edit": ABLATE}], "labView": "difference"}
    assert view.picks["edits"] == [{"on": True, "edit": ABLATE}]


def test_a_saved_page_says_how_to_get_the_lab(gpt: aa.Atlas) -> None:
    about = told(Answers(gpt).packet("about"))
    assert not about["can_edit"]
    assert "attention-atlas serve x.atlas --model MODEL" in about["no_edits"]
