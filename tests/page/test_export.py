"""A saved page and a folder carry the very packets that the server answers."""

import base64
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.names.errors import InputError, StoreError
from attention_atlas.page.answers import edges, vectors, weights
from attention_atlas.page.hosts import export
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.packing import unpack
from tests.tolerance import STORED, reading_tolerance

pytestmark = pytest.mark.usefixtures("stand_in")
_BLOCK = re.compile(r'<script type="application/octet-stream;base64" data-path="(.*?)">(.*?)</')


def _carried(page: Path) -> dict[str, bytes]:
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return {path: base64.b64decode(content) for path, content in blocks}


def test_a_page_carries_its_overview_as_the_server_answers_it(
    seq2seq: aa.Atlas, tmp_path: Path
) -> None:
    carried = _carried(aa.head_view(seq2seq).save(tmp_path / "page.html"))
    towers = [f"edges/0/{name}" for name in ("encoder", "decoder", "cross")]
    sinks = [path.replace("edges", "sinks") for path in towers]
    assert list(carried) == ["about", "input/0", *towers, *sinks]
    answers = Answers(seq2seq)
    assert all(packet == answers.packet(path)[0] for path, packet in carried.items())


def test_a_page_without_maps_scores_and_pictures_leaves_their_code_out(
    gpt: aa.Atlas, stand_in: Path, tmp_path: Path
) -> None:
    part = '<script type="text/plain" data-part="{}">x</script>'
    parts = [part.format(name) for name in ("bars", "more")]
    (stand_in / "file.html").write_text(
        f"<!--ATLAS-DATA-->{''.join(parts)}<!--ATLAS-MORE-->", encoding="utf-8"
    )

    def carried(view: aa.View) -> list[bool]:
        page = view.save(tmp_path / "page.html").read_text(encoding="utf-8")
        return [part in page for part in parts]

    atlas = aa.open(shutil.copytree(gpt.path, tmp_path / "copy.atlas"))
    atlas.layout("pca", progress=False)
    assert carried(aa.head_view(atlas)) == [True, False]
    assert carried(aa.matrix_view(atlas)) == [True, True]
    atlas.measure(progress=False)
    assert carried(aa.heads_view(atlas)) == [True, True]


def test_a_large_page_opens_with_the_layer_that_it_shows(
    gpt: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "SOON", 1_000)
    page = aa.head_view(gpt, layer=3).save(tmp_path / "page.html")
    carried = _carried(page)
    assert list(carried)[:3] == ["about", "input/0", "edges/0/decoder/3"]
    later = {"edges/0/decoder", "input/1", "edges/1/decoder", "sinks/0/decoder", "sinks/1/decoder"}
    assert set(list(carried)[3:]) == later
    answers = Answers(gpt)
    assert all(packet == answers.packet(path)[0] for path, packet in carried.items())
    whole, one = (unpack(carried[f"edges/0/decoder{which}"])["weight"] for which in ("", "/3"))
    np.testing.assert_array_equal(one, np.split(whole, 6)[3])
    every = _carried(aa.model_view(gpt).save(tmp_path / "model.html"))
    assert "edges/0/decoder/0" not in every  # all layers are shown at once


@pytest.mark.full
def test_an_exact_page_carries_rows_and_vectors(
    gpt: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges, "BUDGET", 1_000)  # so that edge lists are not complete
    carried = _carried(aa.head_view(gpt).save(tmp_path / "page.html", exact=True))
    for number in range(2):
        for head in gpt.heads()["head"]:
            np.testing.assert_allclose(
                unpack(carried[f"rows/{number}/{head}"])["weights"],
                gpt.weights(number, head),
                rtol=0,
                atol=reading_tolerance(gpt, number, head),
            )
            assert f"vectors/{number}/{head}" in carried


def test_an_exact_page_of_contributions_carries_their_rows(
    gpt: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges, "EXACT", 0)  # so that edges are rounded
    page = tmp_path / "page.html"
    export.save_page(page, gpt, {"tab": "text", "shown": "contribution"}, exact=True)
    carried = _carried(page)
    assert unpack(carried["as/contribution/-/edges/0/decoder"])["weight"].dtype == np.int16
    rows = unpack(carried["as/contribution/-/rows/0/L3H2"])["weights"]
    expected = gpt.shape(0, 3)[0] * gpt.contributions(0, "L3H2")
    np.testing.assert_allclose(rows, expected, rtol=0, atol=STORED)
    assert "rows/0/L3H2" in carried and not [path for path in carried if "as/moved" in path]


@pytest.mark.full
def test_long_rows_come_in_the_ranges_that_the_page_asks_for(
    gpt: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = len(gpt.tokens(0))
    monkeypatch.setattr(edges, "BUDGET", 1_000)
    monkeypatch.setattr(weights, "LARGEST_ANSWER", n * 10)
    carried = _carried(aa.head_view(gpt).save(tmp_path / "page.html", exact=True))
    assert "rows/0/L0H0/0-9" in carried and f"rows/0/L0H0/10-{n - 1}" in carried
    assert "rows/0/L0H0" not in carried


def test_a_complete_edge_list_needs_no_rows(gpt: aa.Atlas, tmp_path: Path) -> None:
    carried = _carried(aa.head_view(gpt).save(tmp_path / "page.html", exact=True))
    assert not [path for path in carried if path.startswith("rows")]


def test_a_saved_neuron_view_carries_vectors(gpt: aa.Atlas, tmp_path: Path) -> None:
    carried = _carried(aa.neuron_view(gpt).save(tmp_path / "page.html"))
    assert len([path for path in carried if path.startswith("vectors/0/")]) == 36


def test_a_large_neuron_view_carries_the_picked_layer(
    gpt: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "SAVED_BYTES", 10)
    carried = _carried(aa.neuron_view(gpt, layer=3).save(tmp_path / "page.html"))
    paths = [path for path in carried if path.startswith("vectors/0/")]
    assert paths == [f"vectors/0/L3H{head}" for head in range(6)]


def test_a_page_is_whole_or_not_there(
    gpt: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    page = tmp_path / "page.html"
    page.write_text("the old page", encoding="utf-8")
    monkeypatch.setattr(export, "_block", fails)
    with pytest.raises(StoreError, match="the disk is full"):
        aa.head_view(gpt).save(page)
    assert page.read_text(encoding="utf-8") == "the old page"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["page.html"]


@pytest.mark.full
def test_a_folder_holds_the_page_and_its_packets(gpt: aa.Atlas, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    export.save_folder(folder, gpt)
    assert (folder / "index.html").read_text() == "/* page.html */"
    assert (folder / "page.js").is_file() and (folder / "page.css").is_file()
    answers = Answers(gpt)
    for path in ("about", "input/1", "edges/1/decoder", "vectors/0/L5H5"):
        assert (folder / "api" / path).read_bytes() == answers.packet(path)[0]
    export.save_folder(folder, gpt)  # again, over its own


def test_a_folder_of_other_things_is_left_alone(gpt: aa.Atlas, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("five years", encoding="utf-8")
    with pytest.raises(InputError, match="is not empty and is not an exported atlas"):
        export.save_folder(tmp_path, gpt)
