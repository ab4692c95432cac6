"""The commands measure, heads, compare and report."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import attention_atlas as aa
from attention_atlas.page.hosts.figure import with_page
from tests import planted
from tests.atlases import OTHER, SENTENCE
from tests.map_figures import write_figures
from tests.test_bad_input import Captured, run, sentence


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("commands") / "gpt.atlas"
    aa.capture("builtin:gpt", [SENTENCE, OTHER, "<b>Rain</b> & snow."], path=path, progress=False)
    return path


def test_measure_says_each_formula_once_and_then_that_it_is_done(
    folder: Path, capsys: Captured
) -> None:
    assert run("measure", str(folder)) == 0
    first = capsys.readouterr()
    assert "mean over rows with n ≥ 2 of maxⱼ w" in first.out
    assert run("measure", str(folder), "--json") == 0
    again = capsys.readouterr()
    assert "measured already" in again.err
    assert set(json.loads(again.out)["entropy"]) == {
        "title",
        "formula",
        "source",
        "chance",
        "range",
    }


def test_heads_are_listed_sorted_and_filtered(folder: Path, capsys: Captured) -> None:
    assert run("heads", str(folder), "--sort", "previous", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 36 and rows[0]["head"] == "L3H2" and rows[0]["kind"] == "parallel"
    assert run("heads", str(folder), "--kind", "parallel", "--csv") == 0
    out = capsys.readouterr().out
    (folder.parent / "heads.csv").write_text(out)
    frame = pd.read_csv(folder.parent / "heads.csv")
    assert set(frame["kind"]) == {"parallel"} and 0 < len(frame) < 36
    assert run("heads", str(folder), "--sort", "odd") == 0
    assert "L3H2" in capsys.readouterr().out
    assert run("heads", str(folder), "--head", "L3H2") == 0
    assert json.loads(capsys.readouterr().out)["kind"]["detail"] == "1 before"


def test_heads_are_sorted_by_a_figure_of_a_map(tmp_path: Path, capsys: Captured) -> None:
    atlas = planted.planted(tmp_path / "x.atlas", 3)
    atlas.layout("pca", progress=False)
    figures = {"L0H0": {"map.strongest": 0.25}, "L0H2": {"map.strongest": 0.75}}
    write_figures(atlas.path / "layouts" / "pca-2d.safetensors", figures)
    assert run("heads", str(atlas.path), "--sort", "pca-2d.strongest") == 0
    heading, first, second = capsys.readouterr().out.splitlines()[:3]
    assert heading.split()[-1] == "pca-2d.strongest"
    assert (first.split()[0], first.split()[-1]) == ("L0H2", "0.750")
    assert second.split()[0] == "L0H0"


def test_a_score_that_is_not_there_is_told(folder: Path, capsys: Captured) -> None:
    run("measure", str(folder))
    capsys.readouterr()
    assert run("heads", str(folder), "--sort", "beauty") == 2
    assert "no score is named 'beauty'" in sentence(capsys)


def test_two_atlases_are_compared(folder: Path, capsys: Captured) -> None:
    assert run("compare", str(folder), str(folder), "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["nearest"]["L3H2"][0] == "L3H2" and not made["aligned"]
    assert run("compare", str(folder), str(folder)) == 0
    out = capsys.readouterr().out
    assert "RI" in out and "least alike first" in out and "from itself: 0.000" in out


@pytest.mark.full
def test_a_comparison_is_saved_as_one_page(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    other = tmp_path / "bert.atlas"
    aa.capture("builtin:bert", [OTHER], path=other, progress=False)
    page = tmp_path / "page.html"
    assert run("compare", str(folder), str(other), "--save", str(page)) == 0
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text(encoding="utf-8")
    for path in ("about", "compare/0", "reaction/0/0", "heads", "card/L3H2", "input/1"):
        assert f'data-path="{path}"' in text
    assert 'data-path="input/0"' not in text  # the other model did not read it


def test_the_report_is_one_page_that_loads_nothing_and_escapes_what_it_shows(
    folder: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert run("report", str(folder), str(tmp_path / "report.html")) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The heads of builtin:gpt" in page and "L5H5" in page
    assert "<script" not in page and "http" not in page
    assert page.count("<svg") == 20  # kinds, and the 19 scores that a causal model has


@pytest.mark.full
def test_the_report_is_printed_as_a_pdf(folder: Path, tmp_path: Path) -> None:
    assert run("report", str(folder), str(tmp_path / "report.pdf")) == 0
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-") and content.count(b"/Type /Page\n") >= 2


def test_no_column_of_the_printed_report_is_cut_off(folder: Path, tmp_path: Path) -> None:
    assert run("report", str(folder), str(tmp_path / "report.html")) == 0

    def beyond(page: Any) -> bytes:
        page.set_viewport_size({"width": 688, "height": 1000})  # A4 less its margins
        page.emulate_media(media="print")
        page.goto((tmp_path / "report.html").as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth")
        return str(wide).encode()

    assert int(with_page(beyond)) <= 688


def test_without_a_browser_a_pdf_says_what_it_needs(
    folder: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CHROME_PATH", raising=False)
    assert run("report", str(folder), str(tmp_path / "report.pdf")) == 2
    assert "needs a Chromium" in sentence(capsys)
