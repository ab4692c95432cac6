"""Scores, cards and heads alike as the page gets them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.measure.alike import alike
from attention_atlas.measure.run import measure_atlas
from attention_atlas.page.answers import heads
from attention_atlas.page.answers.session import Other
from attention_atlas.page.hosts.export import page_pieces
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.about import Neighbour
from attention_atlas.page.wire.packing import unpack
from attention_atlas.store import files
from attention_atlas.store.scores import read_scores, write_scores
from tests import atlases, planted
from tests.made_once import MadeOnce
from tests.map_figures import write_figures
from tests.tolerance import unit


@pytest.fixture(scope="module")
def answers(made_once: MadeOnce) -> Answers:
    return Answers(aa.open(made_once("gpt", atlases.gpt) / "gpt.atlas"))


def test_a_small_atlas_is_measured_when_its_heads_are_asked_for(answers: Answers) -> None:
    assert unpack(answers.packet("about")[0])["can_measure"]
    packet, fine = answers.packet("heads")
    assert fine
    told = unpack(packet)
    atlas = answers.session.subject
    assert isinstance(atlas, aa.Atlas)
    scores = measure_atlas(atlas, progress=False)
    frame = scores.table.pivot(index="head", columns="measure", values="value")
    names = [one["name"] for one in told["measures"]]
    at = told["heads"].index("L3H2")
    assert told["kinds"][told["kind"][at]] == "parallel" and told["details"][at] == "1 before"
    row = told["value"][names.index("previous")]
    assert row[at] == pytest.approx(frame["previous"]["L3H2"], rel=unit())
    assert np.isnan(told["value"][names.index("next")]).all()  # causal heads cannot look ahead
    assert all(one["formula"] and one["chance"] for one in told["measures"])


def test_figures_of_the_maps_are_columns_beside_the_scores(tmp_path: Path) -> None:
    atlas = planted.planted(tmp_path / "x.atlas", 3)
    atlas.layout("pca", progress=False)
    before = unpack(Answers(atlas).packet("heads")[0])
    shown = [one["title"] for one in before["measures"] if one["title"].startswith("map pca-2d")]
    assert shown[0] == "map pca-2d: strongest near"
    figures = {"L0H0": {"map.strongest": 0.75, "chance": 0.25}, "L0H2": {"map.strongest": 0.5}}
    write_figures(atlas.path / "layouts" / "pca-2d.safetensors", figures)
    (atlas.path / "layouts" / "umap-2d.safetensors").write_bytes(b"damaged")
    told = unpack(Answers(atlas).packet("heads")[0])
    names = [one["name"] for one in told["measures"]]
    row = names.index("pca-2d.strongest")
    np.testing.assert_equal(told["value"][row][:3], [0.75, np.nan, 0.5])
    assert told["chance"][row][0] == 0.25
    assert told["measures"][row]["title"] == "map pca-2d: strongest near"
    assert not [name for name in names if name.startswith("umap")]
    frame = atlas.heads().set_index("head")
    assert frame["pca-2d.strongest"]["L0H2"] == 0.5


def test_the_card_names_heads_alike_and_telling_inputs(answers: Answers) -> None:
    card = unpack(answers.packet("card/L3H2")[0])
    assert card["evidence"]["parallel"] > 0.8
    assert sum(card["counts"].values()) == 2 and set(card["telling"]) <= {0, 1}
    assert len(card["nearest"]) == 5 and "L3H2" not in [one["head"] for one in card["nearest"]]
    alike = unpack(answers.packet("alike")[0])
    assert alike["places"].shape == (36, 2) and len(alike["heads"]) == 36


def test_what_cannot_be_had_is_told(answers: Answers) -> None:
    assert "L9H9" in unpack(answers.packet("card/L9H9")[0])["error"]
    plain = aa.head_view([np.full((1, 1, 4, 4), 0.25)], list("abcd")).subject
    assert "plain attention" in unpack(Answers(plain).packet("heads")[0])["error"]


def test_a_large_atlas_says_how_to_measure_it(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attention_atlas.page.answers.heads.SMALL", 1)
    fresh = Answers(atlases.gpt(tmp_path))
    assert "attention-atlas measure gpt.atlas" in unpack(fresh.packet("heads")[0])["error"]


@pytest.mark.full
def test_a_saved_page_of_a_measured_atlas_carries_its_heads(answers: Answers) -> None:
    assert answers.packet("heads")[1]
    page = b"".join(page_pieces(answers.session.subject, {}))
    assert b'data-path="heads"' in page and b'data-path="card/L5H5"' in page


def test_scores_and_heads_alike_asked_for_at_once_are_measured_once(tmp_path: Path) -> None:
    fresh = Answers(atlases.gpt(tmp_path))
    paths = ["heads", "alike", "card/L3H2", "heads", "card/L0H0", "alike"]
    with ThreadPoolExecutor(len(paths)) as crowd:
        told = list(crowd.map(fresh.packet, paths))
    assert [unpack(packet).get("error") for packet, _ in told] == [None] * len(paths)


def test_a_page_that_asks_for_heads_writes_nothing(tmp_path: Path) -> None:
    other = aa.capture("builtin:gpt", [atlases.SENTENCE], path=tmp_path / "o.atlas", progress=False)
    beside = Other(Neighbour("", "another", 1), other)
    page = Answers(atlases.gpt(tmp_path), None, [beside])
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    for path in ("about", "heads", "alike", "card/L3H2", "compare/0"):
        packet, fine = page.packet(path)
        assert fine, unpack(packet)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


def test_scores_are_read_again_only_when_their_files_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    atlas = planted.planted(tmp_path / "x.atlas", 3)
    atlas.measure(progress=False)
    reads, real = [], read_scores

    def noted(*given: Any) -> Any:
        reads.append(given)
        return real(*given)

    monkeypatch.setattr(heads, "read_scores", noted)
    monkeypatch.setattr(files, "OLD", 0)  # files of this moment count as settled
    answers = Answers(atlas)
    for head in ("L0H0", "L0H1", "L0H2"):
        assert answers.packet(f"card/{head}")[1]
    assert len(reads) == 1
    scores = atlas.measure(progress=False)
    write_scores(atlas.path, atlas.manifest, replace(scores, kinds=scores.kinds.assign(sink=0.5)))
    assert unpack(answers.packet("card/L0H3")[0])["sink"] == 0.5
    assert len(reads) == 2
    (atlas.path / "scores.parquet").write_bytes(b"damaged")
    assert "damaged" in unpack(answers.packet("card/L0H4")[0])["error"]


def test_many_cards_at_once_compare_the_heads_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    atlas = planted.planted(tmp_path / "x.atlas", 3)
    atlas.measure(progress=False)
    begun, real = threading.Barrier(2), alike
    compared = []

    def slow(*given: Any) -> Any:
        compared.append(given)
        with suppress(threading.BrokenBarrierError):
            begun.wait(0.5)  # a second one would come in now
        return real(*given)

    monkeypatch.setattr(heads, "alike", slow)
    answers = Answers(atlas)
    with ThreadPoolExecutor(3) as threads:
        cards = list(threads.map(answers.packet, [f"card/L0H{head}" for head in range(3)]))
    assert all(answered for _, answered in cards) and len(compared) == 1
