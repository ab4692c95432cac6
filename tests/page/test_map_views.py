"""The maps in a notebook, in one file, in a folder; and the command that builds it all."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import attention_atlas as aa
from attention_atlas.cli.app import app
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.page.hosts import export
from attention_atlas.page.live.answers import make_answers
from attention_atlas.page.wire.packing import unpack
from tests import planted

pytestmark = pytest.mark.usefixtures("stand_in")


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    made = planted.planted(tmp_path_factory.mktemp("views") / "x.atlas", 4)
    made.layout("pca", progress=False)
    made.layout("pca", 3, progress=False)
    return made


def blocks(page: str) -> dict[str, bytes]:
    found = re.findall(r'data-path="([^"]+)">([^<]*)<', page)
    return {path: base64.b64decode(content) for path, content in found}


def options(page: str) -> Any:
    return json.loads(re.findall(r'id="atlas-options">([^<]*)<', page)[0])


def test_the_matrix_view_opens_on_the_map_of_all_heads(atlas: aa.Atlas) -> None:
    view = aa.matrix_view(atlas, colour="position", search="cat")
    picks = view.picks
    assert (picks["tab"], picks["map"], picks["mapHead"]) == ("map", "pca-2d", None)
    assert (picks["colour"], picks["search"]) == ("position", "cat")
    assert view.widget.options == {"tab": "map", "chrome": "cell"}
    assert repr(view).startswith("<View: map of <Atlas of planted")


def test_the_map_view_opens_on_one_head(atlas: aa.Atlas) -> None:
    picks = aa.map_view(atlas, head="L0H3", map="pca-3d").picks
    assert (picks["map"], picks["mapHead"], picks["heads"]) == ("pca-3d", "L0H3", ["L0H3"])
    assert aa.map_view(atlas).picks["mapHead"] == "L0H0"


def test_an_atlas_without_maps_opens_so_that_the_page_can_offer_them(tmp_path: Path) -> None:
    bare = planted.planted(tmp_path / "x.atlas", 2)
    view = aa.matrix_view(bare)
    assert view.picks["map"] == ""
    about = unpack(view.widget._answers.packet("about")[0])
    assert about["can_compute"] and about["maps"] == []


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda a: aa.matrix_view(np.ones((1, 1, 2, 2))), InputError, "a map needs queries and"),
        (lambda a: aa.matrix_view(a, "umap-2d"), PickError, "no map is named 'umap-2d'; there is"),
        (lambda a: aa.map_view(a, head="L9H0"), PickError, "decoder has no layer 9"),
        (lambda a: aa.map_view(a, head="5.1"), PickError, "no head is named '5.1'"),
        (lambda a: aa.map_view(a, display_mode="pink"), InputError, "display_mode is 'pink'"),
    ],
)
def test_bad_input_is_told_in_one_sentence(
    atlas: aa.Atlas, call: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        call(atlas)


def test_a_saved_map_carries_one_map_with_all_that_its_page_asks_for(
    atlas: aa.Atlas, tmp_path: Path
) -> None:
    page = aa.matrix_view(atlas, "pca-3d").save(tmp_path / "page.html").read_text("utf-8")
    assert options(page)["tab"] == "map"
    carried = blocks(page)
    heads = [f"L0H{head}" for head in range(planted.HEADS)]
    assert {path for path in carried if "pca" in path} == {
        f"{what}/pca-3d/decoder" for what in ("map", "points", "norms")
    }
    assert {path for path in carried if path.startswith("mean")} == {f"mean/{h}" for h in heads}
    assert sum(path.startswith("edges/") for path in carried) == len(atlas)
    about = unpack(carried["about"])
    assert not about["can_compute"] and not about["can_add"]
    (answers,) = make_answers([atlas])
    for path in ("map/pca-3d/decoder", "mean/L0H1"):
        assert carried[path] == answers.packet(path)[0]


def test_a_saved_map_of_many_inputs_leaves_some_lines_out(
    atlas: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = len(make_answers([atlas])[0].packet("edges/0/decoder")[0])
    monkeypatch.setattr(export, "EDGE_BYTES", int(1.5 * one))
    page = tmp_path / "page.html"
    for exact, expected in ((False, 1), (True, len(atlas))):
        aa.matrix_view(atlas).save(page, exact=exact)
        carried = blocks(page.read_text("utf-8"))
        assert sum(path.startswith("edges/") for path in carried) == expected
        assert sum(path.startswith("input/") for path in carried) == len(atlas)


def test_a_text_view_saves_no_maps(atlas: aa.Atlas, tmp_path: Path) -> None:
    page = aa.head_view(atlas).save(tmp_path / "page.html").read_text("utf-8")
    assert options(page)["tab"] == "text"
    assert not [path for path in blocks(page) if path.startswith(("map", "mean", "points"))]


def test_export_of_an_atlas_with_maps(atlas: aa.Atlas, tmp_path: Path) -> None:
    for name in ("page.html", "site"):
        done = CliRunner().invoke(app, ["export", str(atlas.path), str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    assert options((tmp_path / "page.html").read_text("utf-8"))["tab"] == "map"
    api = tmp_path / "site" / "api"
    for path in ("map/pca-2d/decoder", "map/pca-3d/decoder", "points/pca-2d/decoder", "mean/L0H0"):
        assert unpack((api / path).read_bytes())


def test_build_captures_and_lays_out_and_goes_on_where_it_was(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("The cat sat.\nWho sold the bridge, and why?\n", encoding="utf-8")
    path = tmp_path / "x.atlas"
    command = ["build", "builtin:bert", str(texts), "-o", str(path), "--dims", "2,3"]
    done = CliRunner().invoke(app, [*command, "--method", "pca"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == str(path)
    made = sorted(file.name for file in (path / "layouts").iterdir())
    assert made == ["pca-2d.safetensors", "pca-3d.safetensors"]
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*.safetensors")}
    again = CliRunner().invoke(app, [*command, "--method", "pca"])
    assert again.exit_code == 0, again.output
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*.safetensors")} == before
    assert [one["name"] for one in _about(aa.open(path))["maps"]] == ["pca-2d", "pca-3d"]


def _about(atlas: aa.Atlas) -> Any:
    return unpack(make_answers([atlas])[0].packet("about")[0])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--method", "isomap"], "no layout is named 'isomap'"),
        (["--dims", "4"], "a map has 2 or 3 dimensions, not 4"),
        (["--dims", "two"], "--dims 'two' is not a number"),
        (["--method", ","], "name at least one method"),
    ],
)
def test_build_refuses_before_it_begins(tmp_path: Path, given: list[str], sentence: str) -> None:
    path = tmp_path / "x.atlas"
    done = CliRunner().invoke(app, ["build", "builtin:bert", "A cat.", "-o", str(path), *given])
    assert sentence in str(done.exception)
    assert not path.exists()
