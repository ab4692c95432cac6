"""Every path answers what the atlas itself says, or one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.page.answers import weights
from attention_atlas.page.live import answers
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.packing import unpack
from tests.token_columns import token_list
from tests.tolerance import reading_tolerance


def _ask(atlas: Any, path: str) -> dict[str, Any]:
    packet, found = Answers(atlas).packet(path)
    assert found, unpack(packet)
    return unpack(packet)


def test_about_says_what_there_is(gpt: aa.Atlas) -> None:
    about = _ask(gpt, "about")
    assert (about["model"], about["kind"], about["exact"]) == ("builtin:gpt", "atlas", True)
    assert about["receipt_line"].startswith("capture exact (")
    assert [one["number"] for one in about["inputs"]] == [0, 1]
    (tower,) = about["towers"]
    assert (tower["name"], tower["role"], tower["depth"]) == ("decoder", "causal", 6)
    assert {layer["heads"] for layer in tower["layers"]} == {6}
    assert all(layer["has_vectors"] for layer in tower["layers"])


def test_towers_of_unequal_depth_are_all_there(seq2seq: aa.Atlas) -> None:
    towers = {one["name"]: one for one in _ask(seq2seq, "about")["towers"]}
    assert {name: tower["depth"] for name, tower in towers.items()} == {
        "encoder": 2,
        "decoder": 3,
        "cross": 3,
    }
    assert (towers["cross"]["queries"], towers["cross"]["keys"]) == ("decoder", "encoder")


def test_tokens_are_shown_readable_and_keep_their_raw_text(gpt: aa.Atlas) -> None:
    (stream,) = _ask(gpt, "input/0")["streams"]
    assert [token["raw"] for token in token_list(stream)] == gpt.tokens(0)["text"].tolist()
    said = "".join(token["text"] for token in token_list(stream) if not token["special"])
    assert said.replace("·", " ") == gpt.inputs()["text"][0]


def test_a_pair_has_its_boundary(bert: aa.Atlas) -> None:
    info = _ask(bert, "input/1")
    tokens = token_list(info["streams"][0])
    assert info["second"] == "The dog lay on the rug."
    assert tokens[info["boundary"]]["segment"] == 1
    assert all(token["segment"] < 1 for token in tokens[: info["boundary"]])


def test_generated_tokens_are_marked(tmp_path: Path) -> None:
    atlas = aa.capture("builtin:gpt", "The cat", path=tmp_path / "a", generate=3, progress=False)
    (stream,) = _ask(atlas, "input/0")["streams"]
    marks = [token["generated"] for token in token_list(stream)]
    prompt = int(atlas.inputs()["prompt"][0])
    assert marks == [False] * prompt + [True] * (len(marks) - prompt)
    assert any(marks)


@pytest.mark.parametrize("name", ["gpt", "bert", "seq2seq"])
def test_weights_in_every_packet_are_those_of_the_atlas(
    name: str, request: pytest.FixtureRequest
) -> None:
    atlas: aa.Atlas = request.getfixturevalue(name)
    for tower in atlas.towers:
        prefix = f"{tower.name}." if len(atlas.towers) > 1 else ""
        edges = _ask(atlas, f"edges/0/{tower.name}")
        rows = iter(edges["weight"])
        for layer in tower.layers:
            exact = _ask(atlas, f"layer/0/{tower.name}/{layer.layer}")["weights"]
            for head in range(layer.heads):
                full = f"{prefix}L{layer.layer}H{head}"
                expected = atlas.weights(0, full)
                np.testing.assert_array_equal(_ask(atlas, f"rows/0/{full}")["weights"], expected)
                np.testing.assert_array_equal(exact[head], expected)
                for row in expected:
                    np.testing.assert_array_equal(next(rows), row)


def test_some_rows_are_those_rows(gpt: aa.Atlas) -> None:
    part = _ask(gpt, "rows/1/L2H3/4-6")
    assert part["first"] == 4
    np.testing.assert_allclose(
        part["weights"], gpt.weights(1, "L2H3")[4:7], rtol=0, atol=reading_tolerance(gpt, 1, "L2H3")
    )


def _softmax_of(vectors: dict[str, Any]) -> Any:
    """What the page does with a vectors packet, in float64."""
    logits = vectors["scale"] * (vectors["query"].astype(float) @ vectors["key"].astype(float).T)
    if vectors["softcap"]:
        logits = vectors["softcap"] * np.tanh(logits / vectors["softcap"])
    if vectors["added"] is not None:
        logits = logits + vectors["added"]
    if vectors["mask"] == "causal":
        logits = np.where(np.tri(len(logits), dtype=bool), logits, -np.inf)
    elif vectors["mask"] == "given":
        logits = np.where(vectors["seen"], logits, -np.inf)
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return grown / grown.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "head"),
    [("gpt", "L3H2"), ("bert", "L1H4"), ("seq2seq", "cross.L2H1"), ("seq2seq", "encoder.L0H0")],
)
def test_vectors_give_back_the_weights(
    name: str, head: str, request: pytest.FixtureRequest
) -> None:
    atlas: aa.Atlas = request.getfixturevalue(name)
    vectors = _ask(atlas, f"vectors/0/{head}")
    off = np.abs(_softmax_of(vectors) - atlas.weights(0, head)).max()
    assert off <= reading_tolerance(atlas, 0, head, sides=1)
    np.testing.assert_array_equal(vectors["value"], atlas.values(head, 0))


def test_bias_and_shared_keys_come_along(tmp_path: Path) -> None:
    """T5 adds a bias by offset; grouped heads read one key."""
    import torch
    import transformers

    from tests.atlases import word_tokenizer

    torch.manual_seed(0)
    t5 = transformers.T5EncoderModel(
        transformers.T5Config(vocab_size=20, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    ).eval()
    texts = ["she sees the elephant"]
    atlas = aa.capture(t5, texts, word_tokenizer(), tmp_path / "t5", progress=False)
    vectors = _ask(atlas, "vectors/0/L0H1")
    assert vectors["added"].shape == (5, 5) and vectors["mask"] == "full"
    off = np.abs(_softmax_of(vectors) - atlas.weights(0, "L0H1")).max()
    assert off <= reading_tolerance(atlas, 0, "L0H1", sides=1)

    grouped = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=20, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
            num_attention_heads=4, num_key_value_heads=2, bos_token_id=1, eos_token_id=1,
        )
    ).eval()  # fmt: skip
    atlas = aa.capture(grouped, texts, word_tokenizer(), tmp_path / "llama", progress=False)
    assert _ask(atlas, "vectors/0/L0H2")["shared"] == ["L0H2", "L0H3"]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "no packet is named ''"),
        ("secrets", "no packet is named 'secrets'"),
        ("about/more", "has the wrong number of parts"),
        ("input/9", "there is no input 9; there are 0 to 1"),
        ("input/-1", "'-1' is no input"),
        ("input/0x1", "'0x1' is no input"),
        ("edges/0/encoder", "no tower is named 'encoder'; there is decoder"),
        ("rows/0/L99H0", "decoder has layers 0 to 5, not 99"),
        ("rows/0/L0H99", "there is no L0H99: layer 0 has heads 0 to 5"),
        ("rows/0/5.1", "no head is named '5.1'"),
        ("rows/0/L0H0/5-2", "is no range of rows"),
        ("rows/0/L0H0/0-99999", "is no range of rows"),
        ("layer/0/decoder/77", "decoder has layers 0 to 5, not 77"),
        ("vectors/0/other.L0H0", "no tower is named 'other'"),
        ("rows/0/L" + "9" * 5000 + "H0", "too long"),
        ("input/../../etc/passwd", "has the wrong number of parts"),
    ],
)
def test_what_is_not_there_is_told_in_one_sentence(gpt: aa.Atlas, path: str, sentence: str) -> None:
    packet, found = Answers(gpt).packet(path)
    error = unpack(packet)["error"]
    assert not found
    assert sentence in error and "\n" not in error and len(error) < 400


def test_too_much_at_once_says_how_to_ask(gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "LARGEST_ANSWER", 30)
    packet, found = Answers(gpt).packet("rows/0/L0H0")
    assert not found and "rows/0/L0H0/0-" in unpack(packet)["error"]
    packet, found = Answers(gpt).packet("layer/0/decoder/0")
    assert not found and "ask for the rows of one head" in unpack(packet)["error"]


def test_an_atlas_without_vectors_says_so_in_place(tmp_path: Path) -> None:
    path = tmp_path / "bare.atlas"
    atlas = aa.capture("builtin:gpt", "The cat.", path=path, keep=("weights",), progress=False)
    about = _ask(atlas, "about")
    assert not any(layer["has_vectors"] for layer in about["towers"][0]["layers"])
    packet, found = Answers(atlas).packet("vectors/0/L0H0")
    assert not found and "was captured without queries" in unpack(packet)["error"]
    np.testing.assert_array_equal(_ask(atlas, "rows/0/L0H0")["weights"], atlas.weights(0, "L0H0"))


def test_packets_are_kept_up_to_a_bound(gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(Answers(gpt).packet("rows/0/L0H0")[0])
    monkeypatch.setattr(answers, "KEPT", size)
    asked = Answers(gpt)
    for path in ("about", "rows/0/L0H0", "rows/0/L0H1", "edges/0/decoder"):  # the last is larger
        assert asked.packet(path)[1]
    assert list(asked._kept) == ["rows/0/L0H1"]
    assert asked.packet("rows/0/L0H1")[0] is asked._kept["rows/0/L0H1"]
