"""What a page is told of maps: places, points, colours, the mean; or why not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.atlas import Atlas
from attention_atlas.names.token_text import token_kind
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.packing import unpack
from tests import atlases, planted
from tests.made_once import MadeOnce
from tests.map_figures import write_figures
from tests.tolerance import reading_tolerance, step_tolerance, sum_tolerance

COUNT = 6


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    texts = planted.sentences(COUNT)
    columns: dict[str, list[Any]] = {
        "year": [1990 + number for number in range(COUNT)],
        "writer": ["Ann", "Bob", None, "Ann", "Bob", "Ann"],
        "pos": [["NOUN" if i % 2 else "VERB" for i in range(len(text) - 1)] for text in texts],
        "title": [f"text {number}" for number in range(COUNT)],
    }
    columns["pos"][3] = ["NOUN"]  # as good as none: not as long as the input has words
    made = planted.planted(tmp_path_factory.mktemp("maps") / "x.atlas", COUNT, columns)
    made.layout("pca", progress=False)
    return made


def ask(atlas: Atlas, path: str) -> Any:
    packet, found = Answers(atlas).packet(path)
    told = unpack(packet)
    assert found, told
    return told


def refusal(subject: Any, path: str) -> str:
    packet, found = Answers(subject).packet(path)
    assert not found
    return str(unpack(packet)["error"])


def column(atlas: Atlas, name: str) -> Any:
    columns = ask(atlas, "points/pca-2d/decoder")["columns"]
    return next(one for one in columns if one["name"] == name)


def assert_told(column: Any, expected: Any) -> None:
    """A column travels in 65,534 steps of its range."""
    off = step_tolerance(column["low"], column["high"], 65534)
    n = len(expected)
    np.testing.assert_allclose(numbers(column)[:n], expected, rtol=0, atol=off)


def numbers(column: Any) -> Any:
    across = column["values"] / 65534
    value = column["low"] + across * (column["high"] - column["low"])
    return np.where(column["values"] == 65535, np.nan, value)


def names(column: Any) -> list[str | None]:
    none = np.iinfo(column["values"].dtype).max
    return [None if one == none else column["names"][one] for one in column["values"]]


def test_the_maps_are_told_of(atlas: Atlas) -> None:
    (told,) = ask(atlas, "about")["maps"]
    tokens = atlas.manifest.tokens
    assert (told["name"], told["method"], told["dims"]) == ("pca-2d", "pca", 2)
    heads = [f"L0H{head}" for head in range(planted.HEADS)]
    assert told["groups"] == [
        {"name": "decoder", "heads": heads, "queries": tokens, "keys": tokens}
    ]
    assert told["options"]["joint"] == "attention"


def test_places_are_those_of_the_file(atlas: Atlas) -> None:
    told, made = ask(atlas, "map/pca-2d/decoder"), atlas.layout("pca", progress=False)
    group = made.groups["decoder"]
    np.testing.assert_array_equal(told["places"], group.places)
    np.testing.assert_array_equal(told["box"], group.box)
    column = told["figures"].index("map.correlation")
    assert told["fidelity"][2][column] == pytest.approx(made.of("L0H2")[1]["map.correlation"])


def test_every_point_is_a_token_of_the_atlas_queries_first(atlas: Atlas) -> None:
    told, frame = ask(atlas, "points/pca-2d/decoder"), atlas.tokens()
    assert told["queries"] == len(frame)
    assert told["token"].tolist() == 2 * frame["token"].tolist()
    assert [told["texts"][one] for one in told["text"]] == 2 * frame["text"].tolist()
    assert told["input"].tolist() == 2 * frame["input"].tolist()
    assert told["position"].tolist() == 2 * frame["position"].tolist()
    assert told["special"].astype(bool).tolist() == 2 * (frame["text"] == "<s>").tolist()


def test_colours_of_place_and_text(atlas: Atlas) -> None:
    frame = atlas.tokens()
    sizes = frame.groupby("input")["text"].size()
    long = frame["input"].map(sizes).to_numpy()
    n = len(frame)
    assert_told(column(atlas, "position"), frame["position"] / (long - 1))
    assert names(column(atlas, "mod5"))[:6] == ["0", "1", "2", "3", "4", "0"]
    assert_told(column(atlas, "sentence_length"), long)
    often = [frame["text"].tolist().count(text) for text in frame["text"]]
    assert_told(column(atlas, "frequency"), often)
    letters = [np.nan if text == "<s>" else len(text) for text in frame["text"]]
    assert_told(column(atlas, "length"), letters)
    kinds = ["special" if text == "<s>" else "letters" for text in frame["text"]]
    assert names(column(atlas, "punctuation"))[:n] == kinds


@pytest.mark.parametrize(
    ("text", "kind"),
    [("·cat", "letters"), ("1,990", "number"), ("·…", "punctuation"), ("½", "number"),
     ("don't", "letters"), ("⏎", "space"), ("漢", "letters"), ("·", "space")],
)  # fmt: skip
def test_kinds_of_tokens(text: str, kind: str) -> None:
    assert token_kind(text) == kind


def test_the_persons_columns_colour_too(atlas: Atlas) -> None:
    frame, n = atlas.tokens(), atlas.manifest.tokens
    assert_told(column(atlas, "year"), [1990 + number for number in frame["input"]])
    assert column(atlas, "year")["whole"]
    writers = ["Ann", "Bob", None, "Ann", "Bob", "Ann"]
    assert names(column(atlas, "writer"))[:n] == [writers[number] for number in frame["input"]]


def test_a_list_as_long_as_the_words_colours_word_by_word(atlas: Atlas) -> None:
    frame, n = atlas.tokens(), atlas.manifest.tokens
    expected = [
        None if text == "<s>" or number == 3 else "VERB" if position % 2 else "NOUN"
        for number, position, text in zip(
            frame["input"], frame["position"], frame["text"], strict=True
        )
    ]
    assert names(column(atlas, "pos"))[:n] == expected


def test_a_sampled_map_tells_of_its_own_tokens_only(tmp_path: Path) -> None:
    texts = planted.sentences(COUNT)
    small = planted.write(tmp_path / "x.atlas", texts, *planted.vectors(texts))
    made = small.layout("pca", tokens=50, progress=False).groups["decoder"]
    told = ask(small, "points/pca-2d/decoder")
    assert told["token"].tolist() == [*made.query_tokens.tolist(), *made.key_tokens.tolist()]
    words = small.tokens()["text"].to_numpy()
    assert [told["texts"][one] for one in told["text"]] == words[told["token"]].tolist()
    norms = ask(small, "norms/pca-2d/decoder")
    longest = np.linalg.norm(small.queries("L0H4")[made.query_tokens], axis=1).max()
    assert norms["high"][4, 0] == pytest.approx(longest)


def test_the_mean_is_over_the_inputs_that_reach_a_row(atlas: Atlas) -> None:
    told = ask(atlas, "mean/L0H2")
    total = np.zeros((planted.LONGEST, planted.LONGEST))
    reached = np.zeros(planted.LONGEST, int)
    for number in range(len(atlas)):
        weights = atlas.weights(number, "L0H2")
        n = len(weights)
        total[:n, :n] += weights
        reached[:n] += 1
    longest = int(reached.nonzero()[0][-1]) + 1
    assert (told["inputs"], told["longest"]) == (COUNT, longest)
    assert told["reached"].tolist() == reached[:longest].tolist()
    mean = total[:longest, :longest] / total[:longest].sum(1, keepdims=True)
    off = step_tolerance() + reading_tolerance(atlas, 0, "L0H2") + sum_tolerance(mean)
    np.testing.assert_allclose(told["weights"] / 65535, mean, rtol=0, atol=off)


@pytest.mark.parametrize("side", ["query", "key"])
def test_partners_are_a_row_or_a_column_of_the_weights_with_the_mask(
    side: str, made_once: MadeOnce
) -> None:
    causal = aa.open(made_once("gpt", atlases.gpt) / "gpt.atlas")
    weights = causal.weights(1, "L3H2")
    told = ask(causal, f"partners/1/L3H2/{side}/3")
    expected = weights[3] if side == "query" else weights[:, 3]
    off = reading_tolerance(causal, 1, "L3H2")
    np.testing.assert_allclose(told["weights"], expected, rtol=0, atol=off)
    places = np.arange(len(weights))
    assert told["seen"].tolist() == (places <= 3 if side == "query" else places >= 3).tolist()


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("map/umap-2d/decoder", "no map is named 'umap-2d'; there is pca-2d"),
        ("map/../decoder", "no map is named '..'"),
        ("map/pca-2d/encoder", "has no group 'encoder'; there is decoder"),
        ("map/pca-2d", "has the wrong number of parts"),
        ("links/pca-2d/decoder/L0H0", "no packet is named 'links'"),
        ("mean/5.1", "no head is named '5.1'"),
        ("mean/L7H0", "has layers 0 to 0, not 7"),
        ("partners/0/L0H0/value/0", "'value' is no side; give query or key"),
        ("partners/0/L0H0/key/999", "input 0 has no key 999; it has 0 to"),
        ("partners/0/L7H0/key/0", "has no layer 7"),
        ("partners/99/L0H0/key/0", "there is no input 99"),
    ],
)
def test_what_is_not_there_is_told_in_a_sentence(atlas: Atlas, path: str, sentence: str) -> None:
    assert sentence in refusal(atlas, path)


def test_the_page_gets_the_figures_that_the_file_has(tmp_path: Path) -> None:
    made = planted.planted(tmp_path / "x.atlas", 2)
    made.layout("pca", progress=False)
    figures = {f"L0H{head}": {"chance": 0.25, "map.strongest": head / 8} for head in range(3)}
    write_figures(made.path / "layouts" / "pca-2d.safetensors", figures)
    told = ask(made, "map/pca-2d/decoder")
    assert told["figures"] == ["chance", "map.strongest"]
    assert told["fidelity"][:3].tolist() == [[0.25, 0.0], [0.25, 0.125], [0.25, 0.25]]


def test_plain_attention_has_no_maps() -> None:
    from attention_atlas.page.hosts.views import head_view

    view = head_view(np.full((1, 1, 2, 2), 0.5), ["a", "b"])
    assert "has no maps" in refusal(view.subject, "map/pca-2d/self")
    assert ask(view.subject, "about")["maps"] == []


def test_an_atlas_without_keys_says_why_it_has_no_maps(tmp_path: Path) -> None:
    texts = planted.sentences(2)
    bare = planted.write(tmp_path / "x.atlas", texts, *planted.vectors(texts), keep=("query",))
    told = ask(bare, "about")
    assert told["maps"] == []
    assert "captured without queries and keys (kept: query)" in told["no_maps"]


def test_a_damaged_map_is_named_and_the_rest_lives_on(tmp_path: Path) -> None:
    texts = planted.sentences(2)
    made = planted.write(tmp_path / "x.atlas", texts, *planted.vectors(texts))
    made.layout("pca", progress=False)
    (made.path / "layouts" / "umap-2d.safetensors").write_bytes(b"no such thing")
    told = ask(made, "about")
    assert [one["name"] for one in told["maps"]] == ["pca-2d"]
    assert "the map umap-2d is not shown" in told["notes"][0]
    assert "damaged" in refusal(made, "map/umap-2d/decoder")


def test_a_map_of_another_atlas_is_refused(tmp_path: Path) -> None:
    texts = planted.sentences(3)
    large = planted.write(tmp_path / "large.atlas", texts, *planted.vectors(texts))
    large.layout("pca", progress=False)
    small = planted.write(tmp_path / "small.atlas", texts[:1], *planted.vectors(texts[:1]))
    (large.path / "layouts").rename(small.path / "layouts")
    assert "is of another atlas" in refusal(small, "points/pca-2d/decoder")
