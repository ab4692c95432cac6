"""Scores without sinks are those of plain loops over weights without the same keys."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import attention_atlas as aa
from attention_atlas.cli.app import app
from attention_atlas.measure.measures import MEASURES
from attention_atlas.measure.read_blocks import Machine
from attention_atlas.measure.report import write_report
from attention_atlas.measure.run import measure_atlas
from attention_atlas.measure.set_aside import set_aside
from attention_atlas.measure.shards import Meter
from attention_atlas.names.errors import InputError
from attention_atlas.page.answers.sinks import sinks
from tests import atlases
from tests.measure import plain
from tests.measure.made_blocks import cut, random_block
from tests.tolerance import STORED, unit

TEXTS: list[Any] = [atlases.SENTENCE, atlases.OTHER, "One, two, one, two, one, and then one."]
LAYER = 3
EXACT: Any = ("query", "key", "value", "weights")


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    path = tmp_path_factory.mktemp("sinks") / "gpt.atlas"
    return aa.capture("builtin:gpt", TEXTS, path=path, progress=False)


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    """With its weights, so that loops and measures have the same numbers to start from."""
    path = tmp_path_factory.mktemp("sinks") / "exact.atlas"
    return aa.capture("builtin:gpt", TEXTS, path=path, keep=EXACT, progress=False)


def shown_sinks(atlas: aa.Atlas, number: int) -> list[int]:
    """The sinks that the page names, which are found from whole layers."""
    return [sink.position for sink in sinks(atlas, number, atlas.towers[0].name).sinks]


def by_hand(atlas: aa.Atlas, number: int, head: str) -> dict[str, Any]:
    """What the loops of `plain` need, without the sinks of an input, in float64."""
    gone = shown_sinks(atlas, number)
    weights = atlas.weights(number, head).astype(np.float64)
    see = atlas.terms(head, number).seen.copy()
    see[:, gone] = False
    left = np.where(see, weights, 0)
    left /= np.maximum(left.sum(1, keepdims=True), 1e-300)
    tokens = atlas.tokens(number)
    marks = tokens["text"].str.strip("Ġ ").str.fullmatch(r"[^\w\s]+").to_numpy()
    special = tokens["special"].to_numpy(bool)
    kept = np.delete(np.arange(len(tokens)), gone)
    return {
        "w": left, "see": see, "ids": tokens["id"].tolist(), "special": special.tolist(),
        "punctuation": (marks & ~special).tolist(), "query": atlas.queries(head, number),
        "key": atlas.keys(head, number), "value": atlas.values(head, number), "kept": kept,
    }  # fmt: skip


_LOOPS = {"self": "self_token", "next": "next_token"}
PLAIN = {
    name: getattr(plain, _LOOPS.get(name, name.replace("-", "_")))
    for name in MEASURES
    if MEASURES[name].needs not in ("patches", "mixed")
}


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_every_score_is_that_of_plain_loops_without_the_sinks_that_the_page_names(
    exact: aa.Atlas, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By NumPy, and by torch in blocks of a few rows."""
    atlas = exact
    assert all(shown_sinks(atlas, number) for number in range(len(atlas)))
    monkeypatch.setattr("attention_atlas.measure.read_blocks.WORTH_A_GPU", 0)
    machine = Machine(device, largest=None if device == "numpy" else 400)
    meter = Meter(atlas, machine=machine, without_sinks=True)
    layer = next(layer for layer in meter.layers if layer.layer.layer == LAYER)
    _, scores, _, _ = meter.shard(0).of(layer)
    longest = int(atlas.tokens().groupby("input").size().max())
    # Sums of M terms of up to M tokens of distance, after a division by another sum, in float32;
    # spread is the root of a difference of squares.
    off = 4 * longest**2 * unit()
    for number in range(len(atlas)):
        for head in range(layer.layer.heads):
            given = by_hand(atlas, number, f"L{LAYER}H{head}")
            kept = given.pop("kept")
            for place, measure in enumerate(layer.measures):
                gap = {"key": given["key"][kept]} if measure.name == "norm-gap" else {}
                expected = PLAIN[measure.name](**(given | gap))
                got = scores[number, place, head]
                most = float(np.sqrt(longest * off)) if measure.name == "spread" else off
                wanted = np.nan if expected is None else expected
                assert got == pytest.approx(wanted, abs=most, nan_ok=True), measure.name


def test_weights_that_are_recomputed_give_the_same_scores(atlas: aa.Atlas, exact: aa.Atlas) -> None:
    one, other = (Meter(known, without_sinks=True).shard(0).arrays for known in (atlas, exact))
    for name, array in one.items():
        if name.endswith("scores"):  # vectors are rounded to half precision, distances up to 30
            np.testing.assert_allclose(array, other[name], atol=30 * STORED)


def test_blocks_add_up_without_some_keys_and_with_a_sink_of_the_head() -> None:
    keys = np.array([0, 5])
    for own in (False, True):
        whole = random_block(24, True, 24, 0, np.float64)
        weights = whole.weights * (0.5 if own else 1)  # the other half is on the head's own sink
        whole = whole.of(weights)
        (expected,) = set_aside([whole], keys, own)
        parts = list(set_aside(cut(whole, 7), keys, own))
        np.testing.assert_allclose(
            np.concatenate([part.weights for part in parts], 1), expected.weights, rtol=1e-12
        )
        for i in (1, 6, 23):
            left = [j for j in range(i + 1) if j not in (0, 5)]
            rest = weights[0, i, left].sum() + (0.5 if own else 0)
            np.testing.assert_allclose(expected.weights[0, i, left], weights[0, i, left] / rest)
            assert not expected.weights[0, i, keys].any() and expected.seen[i].sum() == len(left)
        for measure in MEASURES.values():
            one, other = measure.of.over([expected]), measure.of.over(parts)
            assert one == pytest.approx(other, abs=1e-6, nan_ok=True), measure.name


def test_both_kinds_of_scores_are_kept_beside_each_other(atlas: aa.Atlas) -> None:
    with_sinks = atlas.measure(progress=False)
    without = atlas.measure(progress=False, without_sinks=True)
    again = aa.open(atlas.path)
    for known, made in ((again.scores(), with_sinks), (again.scores(True), without)):
        assert known is not None and known.table.equals(made.table)
    first = without.table[without.table["measure"] == "first-token"]
    assert first.empty  # the first token is a sink of every text here
    assert with_sinks.measures["entropy"]["formula"] in without.measures["entropy"]["formula"]
    assert "without the sinks" in without.measures["entropy"]["formula"]
    entropies = [atlas.heads(gone)["entropy"].mean() for gone in (False, True)]
    assert entropies[1] > entropies[0]  # what is left is more even


def test_the_command_line_measures_and_lists_without_sinks(atlas: aa.Atlas, tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["measure", str(atlas.path), "--without-sinks"])
    assert said.exit_code == 0 and "without the sinks of each input" in said.stdout
    listed = CliRunner().invoke(app, ["heads", str(atlas.path), "--without-sinks", "--csv"])
    assert listed.exit_code == 0
    header, first, *_ = listed.stdout.splitlines()
    value = float(first.split(",")[header.split(",").index("entropy")])
    assert value == pytest.approx(atlas.heads(True)["entropy"][0])


def test_a_comparison_and_its_lines_are_without_sinks(atlas: aa.Atlas, exact: aa.Atlas) -> None:
    found = aa.compare(atlas, exact, keep=False, without_sinks=True)
    assert "without the sinks of each input" in found.note
    usual = aa.compare(atlas, exact, keep=False)
    assert "sinks" not in usual.note
    np.testing.assert_array_equal(found.divergence, usual.divergence)  # as the note says
    entropy = found.lines("entropy").table()
    expected = atlas.heads(True).set_index("head")["entropy"]
    np.testing.assert_allclose(entropy.iloc[:, 0], expected.reindex(entropy.index))
    assert (entropy.iloc[:, 0] > usual.lines("entropy").table().iloc[:, 0]).mean() > 0.5


def test_some_shared_inputs_are_measured_without_sinks(atlas: aa.Atlas, tmp_path: Path) -> None:
    """Of two texts that both atlases have, scores are those of an atlas of these two."""
    few = aa.capture("builtin:gpt", TEXTS[:2], path=tmp_path / "few.atlas", progress=False)
    found = aa.compare(few, atlas, keep=False, without_sinks=True).lines("entropy").table()
    # Two captures, whose vectors are each rounded to half precision.
    np.testing.assert_allclose(found.iloc[:, 0], found.iloc[:, 1], atol=STORED)


def test_a_report_says_that_sinks_are_left_out(atlas: aa.Atlas, tmp_path: Path) -> None:
    pages = []
    for option in ([], ["--without-sinks"]):
        said = CliRunner().invoke(
            app, ["report", str(atlas.path), str(tmp_path / "r.html"), *option]
        )
        assert said.exit_code == 0
        pages.append((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "without the sinks of each input" not in pages[0]
    assert "All weights are without the sinks of each input" in pages[1]
    value = f"{atlas.heads(True)['entropy'][0]:.4g}"
    assert f"L0H0: {value}" in pages[1] and f"L0H0: {value}" not in pages[0]


def test_a_report_of_what_is_not_measured_says_what_to_do(tmp_path: Path) -> None:
    fresh = aa.capture("builtin:gpt", TEXTS[0], path=tmp_path / "new.atlas", progress=False)
    with pytest.raises(
        InputError, match=r"not measured without sinks; .*new.atlas --without-sinks"
    ):
        write_report(fresh, tmp_path / "r.html", without_sinks=True)


def test_the_command_line_compares_without_sinks(atlas: aa.Atlas, exact: aa.Atlas) -> None:
    asked = ["compare", str(atlas.path), str(exact.path), "--json", "--without-sinks"]
    said = CliRunner().invoke(app, asked)
    assert (
        said.exit_code == 0 and "without the sinks of each input" in json.loads(said.stdout)["note"]
    )


def test_shards_and_cores_change_nothing(atlas: aa.Atlas, tmp_path: Path) -> None:
    cut_up = aa.capture(
        "builtin:gpt", TEXTS, path=tmp_path / "cut.atlas", shard_bytes=100_000, progress=False
    )
    assert len(cut_up.manifest.shards) > 1
    one = measure_atlas(atlas, progress=False, keep=False, again=True, without_sinks=True)
    other = measure_atlas(cut_up, progress=False, keep=False, without_sinks=True)
    columns = ["value", "low", "high", "chance"]
    # Another batch may round a vector to another half-precision number.
    np.testing.assert_allclose(one.table[columns], other.table[columns], rtol=STORED, atol=STORED)
