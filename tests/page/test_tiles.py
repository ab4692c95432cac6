"""A long input is sent in bounded packets: tiles, windows, columns of tokens."""

import socket
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import attention_atlas as aa
from attention_atlas.names.wanted import UnwantedError, stop_if_unwanted
from attention_atlas.page.hosts import launch
from attention_atlas.page.hosts.export import save_page
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.wire.constants import LONG_INPUT, UNIT
from attention_atlas.page.wire.packing import unpack
from attention_atlas.store import cores
from attention_atlas.store.coarse_levels import CoarseLevels
from attention_atlas.store.form import CAUSAL
from attention_atlas.store.pyramids import Pyramids
from tests import planted
from tests.made_once import MadeOnce
from tests.token_columns import token_list
from tests.tolerance import reading_tolerance, step_tolerance, unit

LONG, SHORT, HEADS = 3000, 40, 2
TEXTS = [["<s>"] + [f"w{i % 50}" for i in range(1, size)] for size in (LONG, SHORT)]


def make(folder: Path) -> None:
    """A long and a short input; in L0H1 every query of the long one looks at key 5."""
    dice = np.random.default_rng(0)
    query, key = dice.normal(size=(2, HEADS, LONG + SHORT, 16))
    query[1, :, 0], key[1, :, 0], key[1, 5, 0] = 8, 0, 4
    planted.write(folder / "long.atlas", TEXTS, query, key, form=CAUSAL)


@pytest.fixture(scope="module")
def atlas(made_once: MadeOnce) -> aa.Atlas:
    return aa.open(made_once("long-packets", make) / "long.atlas")


@pytest.fixture(scope="module")
def answers(atlas: aa.Atlas) -> Answers:
    return make_answers([atlas])[0]


def told(answers: Answers, path: str) -> dict[str, Any]:
    packet, answered = answers.packet(path)
    told = unpack(packet)
    assert answered, told
    return told


def refused(answers: Answers, path: str) -> str:
    packet, answered = answers.packet(path)
    assert not answered
    return str(unpack(packet)["error"])


def cells(packet: dict[str, Any], what: str) -> npt.NDArray[np.float64]:
    """Numbers as the page reads them."""
    largest = packet["peak" if what == "strongest" else "most"]
    return np.asarray((packet[what] / UNIT) ** 2 * largest)


def root_tolerance(values: Any) -> npt.NDArray[np.float64]:
    """Half a step of a root r is 2 r half steps of its square, and half a step squared."""
    largest = float(np.max(values))
    roots = np.sqrt(np.asarray(values, float) / largest)
    return largest * ((2 * roots + 0.5 / UNIT) * 0.5 / UNIT + 8 * unit())


@pytest.mark.parametrize("without", ["", "/5", "/sinks"])
@pytest.mark.parametrize("asked", [(0, 3, 1), (2, 2, 0), (4, 0, 0)])
def test_a_tile_is_that_of_the_atlas(
    answers: Answers, atlas: aa.Atlas, asked: tuple[int, int, int], without: str
) -> None:
    packet = told(answers, f"tile/0/L0H1/{'/'.join(map(str, asked))}{without}")
    tile = atlas.tile(0, "L0H1", *asked, [5] if without else ())
    assert packet["without"] == ([5] if without else [])
    for what in ("strongest", "mass"):
        expected = getattr(tile, what)[: tile.rows, : tile.columns]
        found = cells(packet["cells"], what)
        assert found.shape == expected.shape
        assert (np.abs(found - expected) <= root_tolerance(expected)).all()


def test_the_overview_comes_sampled_and_then_exact(answers: Answers, atlas: aa.Atlas) -> None:
    exact, sampled = (told(answers, f"overview/0/L0H1/{how}") for how in (0, 1))
    weights = atlas.weights(0, "L0H1").astype(float)
    assert (exact["step"], sampled["step"], exact["level"]) == (1, 16, 4)
    assert (exact["n"], exact["m"], exact["sinks"]) == (LONG, LONG, [5])
    slack = LONG * (reading_tolerance(atlas, 0, "L0H1") + 4 * unit())
    np.testing.assert_allclose(exact["column_mass"], weights.sum(0), rtol=0, atol=slack)
    expected = weights[::16].sum(0) * LONG / len(weights[::16])
    np.testing.assert_allclose(sampled["column_mass"], expected, rtol=0, atol=slack)
    assert exact["kept"].shape == exact["drawn"].shape == (5,)
    assert exact["kept"][0] == pytest.approx(1) and (np.diff(exact["kept"]) < 0).all()
    assert np.isnan(sampled["kept"]).all()
    assert exact["total"] == pytest.approx(LONG, rel=1e-5)


def test_a_page_knows_which_inputs_are_long_before_it_asks(answers: Answers) -> None:
    assert [line["tokens"] for line in told(answers, "about")["inputs"]] == [LONG, SHORT]
    assert LONG > LONG_INPUT > SHORT


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("edges/0/decoder", "ask for a window of one layer, as in edges/0/decoder/0/0-255/0-255"),
        ("edges/0/decoder/0", "ask for a window"),
        ("vectors/0/L0H0", "too many for all vectors"),
        ("layer/0/decoder/0", "ask for the rows of one head"),
        ("rows/0/L0H0", "ask for at most 1333 rows"),
        ("gaze/0/decoder/0/0", "ask for some rows"),
        ("edges/0/decoder/0/0-2999/0-2999", "this window has 2 × 3000 × 3000 weights"),
        ("edges/0/decoder/0/0-3000/0-9", "is no range"),
        ("tile/0/L0H0/9/0/0", "no level 9"),
        ("tile/0/L0H0/0/0/0/first", "names no keys; give positions as in 0,5,7, or sinks"),
        ("tile/0/L0H0/0/0/0/3000", "keys go from 0 to 2999"),
        ("overview/0/L0H0/2", "give 1 (every 16th row) or 0 (all)"),
    ],
)
def test_what_would_be_too_much_is_refused_in_a_sentence(
    answers: Answers, path: str, sentence: str
) -> None:
    assert sentence in refused(answers, path)


def test_a_window_of_edges_is_that_of_all_heads(answers: Answers, atlas: aa.Atlas) -> None:
    edges = told(answers, "edges/0/decoder/0/2000-2099/1950-2049")
    assert (edges["n"], edges["m"], edges["heads"]) == ([100], [100], [HEADS])
    assert (edges["first_row"], edges["first_column"]) == (2000, 1950)
    weights = np.zeros((HEADS * 100, 100))
    np.put_along_axis(weights, edges["index"], (edges["weight"] / UNIT) ** 2, axis=1)
    whole = atlas.rows(0, 0, rows=range(2000, 2100)).astype(float)
    expected = whole[:, :, 1950:2050].reshape(-1, 100)
    slack = reading_tolerance(atlas, 0)
    np.testing.assert_allclose(weights, expected, rtol=0, atol=2 * step_tolerance() + slack)
    rest = 1 - expected.sum(1)
    off = step_tolerance() + 100 * slack + LONG * unit()
    np.testing.assert_allclose(edges["rest"] / UNIT, rest, rtol=0, atol=off)


@pytest.mark.parametrize(("side", "position"), [("query", 2500), ("key", 5), ("key", 2999)])
def test_partners_of_a_token_need_no_other_weights(
    answers: Answers, atlas: aa.Atlas, side: str, position: int
) -> None:
    packet = told(answers, f"partners/0/L0H1/{side}/{position}")
    weights, seen = atlas.weights(0, "L0H1"), np.tri(LONG, dtype=bool)
    line = (slice(position, position + 1),) if side == "query" else (slice(None), position)
    atol = reading_tolerance(atlas, 0, "L0H1")
    np.testing.assert_allclose(packet["weights"], weights[line].ravel(), rtol=0, atol=atol)
    assert (packet["seen"].astype(bool) == seen[line].ravel()).all()


def test_an_input_of_many_tokens_is_small(tmp_path: Path) -> None:
    count = 32_768
    words = [f"word{i % 3000}" for i in range(count)]
    atlas = planted.write(tmp_path / "x.atlas", [words], *np.zeros((2, 1, count, 1)))
    packet, answered = make_answers([atlas])[0].packet("input/0")
    assert answered
    text = len(" ".join(words))
    assert len(packet) - text < 16 * count  # as JSON objects: 150 bytes a token
    (stream,) = unpack(packet)["streams"]
    assert [token["text"] for token in token_list(stream)] == words


def test_no_packet_of_a_long_input_has_all_pairs_in_memory(answers: Answers) -> None:
    paths = ["input/0", "overview/0/L0H0/1", "overview/0/L0H0/0", "tile/0/L0H0/0/5/5",
             "edges/0/decoder/0/0-255/0-255", "partners/0/L0H0/key/9", "mean/L0H0"]  # fmt: skip
    told(answers, "rows/0/L0H0/0-0")  # the file is opened and checked
    answers._forget()
    for path in paths:
        tracemalloc.start()
        try:
            told(answers, path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < LONG * LONG * 4, f"{path}: {peak / 2**20:.0f} MiB"


def test_a_saved_page_of_a_long_input_has_its_overviews(
    atlas: aa.Atlas, tmp_path: Path, stand_in: Path
) -> None:
    save_page(tmp_path / "page.html", atlas, {"tab": "text", "input": 0})
    page = (tmp_path / "page.html").read_text()
    assert 'data-path="overview/0/L0H1/0"' in page
    assert 'data-path="edges/1/decoder"' in page
    assert 'data-path="edges/0/decoder' not in page


def test_a_server_stops_what_its_page_no_longer_wants(
    atlas: aa.Atlas, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that zooms on drops its request; the pass over all rows ends after its next band."""
    plain = CoarseLevels._read
    begun, left, read = threading.Event(), threading.Event(), []

    def slowly(self: CoarseLevels, band: int) -> None:
        read.append(band)
        begun.set()
        # Until the server has seen that the page is gone; at most some seconds, so that a test
        # that fails ends too.
        end = time.monotonic() + 5
        while stop_is_quiet() and time.monotonic() < end:
            time.sleep(0.01)
        left.set()
        plain(self, band)

    def stop_is_quiet() -> bool:
        try:
            stop_if_unwanted()
        except UnwantedError:
            return False
        return True

    monkeypatch.setattr(CoarseLevels, "_read", slowly)
    monkeypatch.setattr(cores, "cores", lambda: 1)
    atlas._pyramids = Pyramids()
    with launch.start([atlas]) as server:
        host, port = server.url.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port))) as page:
            ask = f"GET /api/overview/0/L0H0/0 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
            page.sendall(ask.encode())
            assert begun.wait(20)
        assert left.wait(20)
    assert len(read) == 1
