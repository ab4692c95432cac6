"""Models side by side as the page gets them."""

from pathlib import Path

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.page.answers.comparison import pooled
from attention_atlas.page.answers.sinks import sinks
from attention_atlas.page.hosts.export import save_comparison
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.wire.packing import unpack
from attention_atlas.store.reader import StoredAtlas
from tests import atlases
from tests.tolerance import STORED, reading_tolerance


@pytest.fixture(scope="module")
def served(gpt: aa.Atlas, bert: aa.Atlas) -> list[Answers]:
    plain = aa.head_view([np.full((1, 1, 4, 4), 0.25)], list("abcd")).subject
    return make_answers([gpt, bert, plain])


def atlas_of(answers: Answers) -> StoredAtlas:
    assert isinstance(answers.session.subject, StoredAtlas)
    return answers.session.subject


def test_statistics_and_importance_are_those_of_the_weights(served: list[Answers]) -> None:
    told = unpack(served[1].packet("compare/0")[0])
    assert told["inputs"].tolist() == [[0, 0]]  # the pair is only in one of them
    assert told["models"][0]["name"] == "builtin:bert" and told["models"][1]["way"] == "../"
    for one, answers in zip(told["models"], (served[1], served[0]), strict=True):
        atlas = atlas_of(answers)
        largest = [atlas.weights(0, head).max() for head in one["heads"]]
        off = reading_tolerance(atlas, 0)  # the pass and the reader multiply in other shapes
        assert one["importance"] == pytest.approx(largest, abs=off)
        assert one["statistics"]["RI"] == pytest.approx(np.std(largest), abs=off)
        assert sum(one["counts"].values()) == 36
    assert told["counterparts"][0]["away"].shape == (36,)
    assert told["places"].shape == (72, 2)


def test_importance_without_sinks_is_that_of_the_other_weights(served: list[Answers]) -> None:
    told = unpack(served[1].packet("compare_without_sinks/0")[0])
    assert "without the sinks of each input" in told["note"]
    for one, answers in zip(told["models"], (served[1], served[0]), strict=True):
        atlas = atlas_of(answers)
        gone = [sink.position for sink in sinks(atlas, 0, atlas.towers[0].name).sinks]
        assert gone or atlas.manifest.model == "builtin:bert"  # which has none here
        largest = []
        for head in one["heads"]:
            left = atlas.weights(0, head).astype(float)
            left[:, gone] = 0
            largest.append((left / np.maximum(left.sum(1, keepdims=True), 1e-30)).max())
        # What is left of a row is divided by its sum, which may be small.
        assert one["importance"] == pytest.approx(largest, abs=STORED)


def test_a_saved_comparison_opens_without_sinks(served: list[Answers], tmp_path: Path) -> None:
    both = [atlas_of(answers) for answers in (served[1], served[0])]
    save_comparison(tmp_path / "page.html", both, without_sinks=True)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for path in ("compare/0", "compare_without_sinks/0"):
        assert f'data-path="{path}"' in page
    assert '"withoutSinks": true' in page or '"withoutSinks":true' in page


def test_reactions_are_the_weights_themselves_where_inputs_are_short(
    served: list[Answers],
) -> None:
    told = unpack(served[0].packet("reaction/0/0")[0])
    for one, answers in zip(told["models"], served, strict=False):
        atlas = atlas_of(answers)
        heads = [str(name) for name in atlas.heads()["head"]]
        for name in ("L0H0", "L3H2", "L5H5"):
            at = heads.index(name)
            weights = atlas.weights(0, name)
            assert one["tokens"] == len(weights)
            assert one["cells"][at] / 255 == pytest.approx(weights, abs=1 / 255)
            assert one["importance"][at] == pytest.approx(
                weights.max(), abs=reading_tolerance(atlas, 0, name)
            )


def test_long_inputs_are_drawn_by_the_largest_weight_of_each_part() -> None:
    weights = np.random.default_rng(0).random((2, 70, 45))
    made = pooled(weights, 32)
    rows, columns = np.arange(33) * 70 // 32, np.arange(33) * 45 // 32
    expected = [
        [weights[1, rows[i] : rows[i + 1], columns[j] : columns[j + 1]].max() for j in range(32)]
        for i in range(32)
    ]
    assert made[1] == pytest.approx(np.array(expected))
    assert (pooled(weights[:, :5, :5], 5) == weights[:, :5, :5]).all()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("compare/1", "plain attention is not compared"),
        ("compare/7", "names no other atlases of this server; there are 0 to 1"),
        ("compare/0,0", "names no other atlases"),
        ("compare/-1", "names no other atlases"),
        ("reaction/0/9", "9 is no shared input"),
        ("compare", "has the wrong number of parts"),
    ],
)
def test_what_cannot_be_compared_is_told(served: list[Answers], path: str, told: str) -> None:
    packet, fine = served[0].packet(path)
    assert not fine and told in unpack(packet)["error"]


def test_an_atlas_alone_has_nothing_to_compare_with(served: list[Answers]) -> None:
    told = unpack(Answers(served[0].session.subject).packet("compare/0")[0])
    assert "there are none" in told["error"]


@pytest.mark.full
def test_a_large_atlas_that_was_not_measured_is_left_to_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attention_atlas.page.answers.comparison.SMALL", 1)
    fresh = make_answers([atlases.gpt(tmp_path), atlases.bert(tmp_path)])
    assert "run: attention-atlas measure" in unpack(fresh[0].packet("compare/0")[0])["error"]


@pytest.mark.full
def test_pictures_cannot_be_compared_and_it_is_said(tmp_path: Path) -> None:
    from PIL import Image

    picture = tmp_path / "grey.png"
    Image.new("RGB", (32, 32), "grey").save(picture)
    vit = aa.capture("builtin:vit", str(picture), path=tmp_path / "v.atlas", progress=False)
    told = make_answers([atlases.gpt(tmp_path), vit])[0].packet("compare/0")[0]
    assert "inputs that are not texts" in unpack(told)["error"]
