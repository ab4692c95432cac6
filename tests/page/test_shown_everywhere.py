"""What is moved, contributions and the absence of sinks in tiles, means and saved pages."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.mean_pattern import mean_pattern
from attention_atlas.page.answers.sinks import sinks
from attention_atlas.page.hosts.export import save_folder, save_page
from attention_atlas.page.live.answers import make_answers
from attention_atlas.page.wire.constants import SIGNED_UNIT, UNIT
from attention_atlas.page.wire.packing import unpack
from tests import atlases
from tests.made_once import MadeOnce
from tests.tolerance import STORED, reading_tolerance, step_tolerance

HEAD, LAYER, NUMBER = "L3H2", 3, 2
_PATH = re.compile(r'data-path="(.*?)"')


def carried_by(page: Path) -> list[str]:
    return _PATH.findall(page.read_text(encoding="utf-8"))


def _with_weights(folder: Path) -> None:
    keep = ("query", "key", "value", "weights")
    path = folder / "kept.atlas"
    aa.capture("builtin:gpt", atlases.SENTENCE, path=path, keep=keep, progress=False)


@pytest.fixture(scope="module")
def with_weights(made_once: MadeOnce) -> aa.Atlas:
    return aa.open(made_once("kept-weights", _with_weights) / "kept.atlas")


def lengths(atlas: aa.Atlas, input: int) -> Any:
    """‖f(v_j)‖ of each key, written out."""
    matrix = atlas.output.projection(atlas.towers[0].name, LAYER).matrix[NUMBER]
    return np.linalg.norm(atlas.values(HEAD, input).astype(float) @ matrix.astype(float), axis=1)


def share_moved(atlas: aa.Atlas, input: int, gone: list[int]) -> Any:
    """w_ij ‖f(v_j)‖ over its row, without some keys."""
    moved = atlas.weights(input, HEAD).astype(float) * lengths(atlas, input)
    moved[:, gone] = 0
    return moved / np.maximum(moved.sum(1, keepdims=True), 1e-30)


@pytest.mark.parametrize("gone", [[], [0, 4]])
@pytest.mark.parametrize("stored", [False, True])
def test_tiles_of_what_is_moved_are_those_of_plain_loops(
    gone: list[int], stored: bool, gpt: aa.Atlas, with_weights: aa.Atlas
) -> None:
    atlas = with_weights if stored else gpt
    tile = atlas.moved_pyramid(0, HEAD, gone).tile(0, 0, 0)
    expected = share_moved(atlas, 0, gone)
    n = len(expected)
    np.testing.assert_allclose(tile.strongest[:n, :n], expected, rtol=0, atol=STORED)
    rows = slice(1 if gone else 0, n)  # without key 0, row 0 moves nothing
    np.testing.assert_allclose(tile.mass[rows, :n].sum(1), 1, atol=1e-5)


@pytest.mark.parametrize("gone", [[], [0, 4]])
@pytest.mark.parametrize("stored", [False, True])
def test_tiles_of_contributions_are_the_rows_of_contributions(
    gone: list[int], stored: bool, gpt: aa.Atlas, with_weights: aa.Atlas
) -> None:
    atlas = with_weights if stored else gpt
    tile = atlas.contribution_pyramid(0, HEAD, gone).tile(0, 0, 0)
    heads, n, _ = atlas.shape(0, LAYER)
    expected = heads * atlas.moved_rows("contribution", gone).rows(0, LAYER, None, [NUMBER])[0]
    assert expected.min() < -STORED  # some point against the output
    off = 1e-5 if stored else share_tolerance(atlas, expected)
    np.testing.assert_allclose(tile.strongest[:n, :n], expected, rtol=0, atol=off)
    np.testing.assert_allclose(tile.mass[:n, :n], np.abs(expected), rtol=0, atol=off)


def share_tolerance(atlas: aa.Atlas, shares: Any) -> float:
    """Tiles take the model's log-sum-exp, rows that of rounded vectors: so far are weights apart.

    A share is a weight times a number of its key and row, and that number has the weights of all
    heads in it once more.
    """
    n = len(shares)
    apart = np.abs(atlas.window(0, LAYER, None, range(n), range(n)) - atlas.rows(0, LAYER)).max()
    weights = atlas.weights(0, HEAD)
    known = weights > STORED
    return 2 * float(apart * (np.abs(shares)[known] / weights[known]).max())


def test_the_page_gets_tiles_of_contributions_with_their_signs(gpt: aa.Atlas) -> None:
    answers = make_answers([gpt])[0]
    packet, answered = answers.packet(f"as/contribution/-/overview/0/{HEAD}/0")
    told = unpack(packet)
    assert answered and told["cells"]["strongest"].dtype == np.int16
    heads = gpt.shape(0, LAYER)[0]
    expected = heads * gpt.contributions(0, HEAD)
    roots = told["cells"]["strongest"].astype(float) / SIGNED_UNIT
    shown = roots * np.abs(roots) * told["cells"]["peak"]
    # Roots are rounded to half a step, so a number to a step of it times its root.
    off = share_tolerance(gpt, expected) + np.abs(expected).max() / SIGNED_UNIT
    np.testing.assert_allclose(shown, expected, rtol=0, atol=off)
    sizes = np.abs(expected).sum(0)
    np.testing.assert_allclose(told["column_mass"], sizes, rtol=0, atol=len(sizes) * off)
    tile = unpack(answers.packet(f"as/contribution/-/tile/0/{HEAD}/0/0/0/0,4")[0])
    assert tile["without"] == [0, 4] and not tile["cells"]["strongest"][:, [0, 4]].any()


def test_the_page_gets_tiles_of_what_is_moved(gpt: aa.Atlas) -> None:
    answers = make_answers([gpt])[0]
    packet, answered = answers.packet(f"as/moved/-/overview/0/{HEAD}/0")
    told = unpack(packet)
    assert answered
    expected = share_moved(gpt, 0, []).sum(0)
    np.testing.assert_allclose(told["column_mass"], expected, rtol=0, atol=len(expected) * STORED)
    weights = unpack(answers.packet(f"overview/0/{HEAD}/0")[0])
    assert told["sinks"] == weights["sinks"]  # a sink is one of the weights


def mean_of(each: list[Any]) -> Any:
    """The mean by position, whose sizes sum to one in a row."""
    n = max(len(rows) for rows in each)
    total = np.zeros((n, n))
    for rows in each:
        total[: len(rows), : len(rows)] += rows
    return total / np.maximum(np.abs(total).sum(1, keepdims=True), 1e-12)


def test_the_mean_pattern_is_that_of_what_is_shown(gpt: aa.Atlas) -> None:
    heads = gpt.shape(0, LAYER)[0]
    shares = [heads * gpt.contributions(i, HEAD) for i in range(len(gpt))]
    found = mean_pattern(gpt, HEAD, "contribution")
    assert (found.weights < 0).any()
    np.testing.assert_allclose(found.weights, mean_of(shares), rtol=0, atol=1e-5)
    moved = []
    for i in range(len(gpt)):
        layer = np.stack([gpt.moved_norms(i, f"L{LAYER}H{head}") for head in range(heads)])
        moved.append(layer[NUMBER] / layer.sum((0, 2))[:, None])
    found = mean_pattern(gpt, HEAD, "moved")
    np.testing.assert_allclose(found.weights / UNIT, mean_of(moved), rtol=0, atol=step_tolerance())


def test_the_mean_without_sinks_leaves_out_those_of_each_input(gpt: aa.Atlas) -> None:
    tower = gpt.towers[0].name
    left = []
    for i in range(len(gpt)):
        own = [sink.position for sink in sinks(gpt, i, tower).sinks]
        assert 0 in own
        rows = gpt.weights(i, HEAD).astype(float)
        rows[:, own] = 0
        left.append(rows / np.maximum(rows.sum(1, keepdims=True), 1e-30))
    found = mean_pattern(gpt, HEAD, "weights", "sinks").weights / UNIT
    assert not found[:, 0].any()
    np.testing.assert_allclose(found, mean_of(left), rtol=0, atol=step_tolerance())
    with pytest.raises(PickError, match="names no keys"):
        mean_pattern(gpt, HEAD, "weights", "all")


@pytest.mark.usefixtures("stand_in")
def test_a_saved_page_holds_what_it_showed_with_and_without_sinks(
    gpt: aa.Atlas, tmp_path: Path
) -> None:
    tower = gpt.towers[0].name
    save_page(tmp_path / "x.html", gpt, {"tab": "text", "shown": "contribution"}, inputs=[0])
    carried = carried_by(tmp_path / "x.html")
    keys = ",".join(str(sink.position) for sink in sinks(gpt, 0, tower).sinks)
    path = f"edges/0/{tower}"
    assert {path, f"as/contribution/-/{path}", f"as/contribution/{keys}/{path}"} <= set(carried)
    assert not any(path.startswith("as/moved") for path in carried)
    save_page(tmp_path / "y.html", gpt, {"tab": "text"}, inputs=[0])
    assert not any(path.startswith("as/") for path in carried_by(tmp_path / "y.html"))


@pytest.mark.usefixtures("stand_in")
def test_a_folder_holds_what_each_choice_of_the_switch_shows(
    gpt: aa.Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tower, answers = gpt.towers[0].name, make_answers([gpt])[0]
    save_folder(tmp_path / "site", gpt)
    for i in range(len(gpt)):
        keys = ",".join(str(sink.position) for sink in sinks(gpt, i, tower).sinks)
        for how, without in product(("moved", "contribution"), ("-", keys)):
            path = f"as/{how}/{without}/edges/{i}/{tower}"
            assert (tmp_path / "site" / "api" / path).read_bytes() == answers.packet(path)[0]
    monkeypatch.setattr("attention_atlas.page.answers.moved.SMALL", 1000)  # all inputs are large
    save_folder(tmp_path / "large", gpt)
    held = [
        str(path.relative_to(tmp_path / "large/api")) for path in tmp_path.glob("large/api/as/**/*")
    ]
    assert sorted(path for path in held if path.endswith(tower)) == [
        f"as/moved/-/edges/{i}/{tower}" for i in range(len(gpt))
    ]


def test_layers_that_were_read_are_given_again_as_they_are(gpt: aa.Atlas) -> None:
    grown = Grown(gpt)
    whole = grown.rows(0, LAYER)
    assert grown.rows(0, LAYER, None, range(len(whole))) is whole and not whole.flags.writeable
    part = grown.rows(0, LAYER, None, [1], [-1, 2], [0, 3])
    alone = gpt.rows(0, LAYER, None, [1], [-1, 2], [0, 3])
    np.testing.assert_allclose(part, alone, rtol=0, atol=reading_tolerance(gpt, 0))
    with pytest.raises(PickError, match="heads go from 0"):
        grown.rows(0, LAYER, None, [99])


def test_all_rows_in_another_order_are_the_same_rows(gpt: aa.Atlas) -> None:
    atlas = aa.open(gpt.path)
    n = len(atlas.tokens(input=0))
    backwards = list(range(n))[::-1]
    turned = atlas.moved_rows("contribution").rows(0, 2, rows=backwards)
    whole = aa.open(gpt.path).moved_rows("contribution").rows(0, 2)
    np.testing.assert_allclose(turned, whole[:, ::-1], atol=1e-5)
