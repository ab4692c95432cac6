"""HeadVis' files, both ways: ours read again, an export made by hand, and files that are wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from tests.planted import planted
from tests.ways.made import put, sequence, write_export

HAND = ["<s>", "the", "cat", "the"]
FIRST = {(0, 0): 1.0, (1, 0): 0.5, (1, 1): 0.5, (2, 1): 0.75, (3, 2): 0.9}


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    return planted(tmp_path_factory.mktemp("planted") / "x.atlas", 4)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    other = {(0, 0): 1.0, (1, 1): 0.25, (2, 0): 0.5, (3, 3): 0.125}
    return write_export(
        tmp_path / "export",
        {
            (5, 0): [sequence(7, HAND, FIRST)],
            (5, 1): [sequence(7, HAND, other), sequence(3, ["<s>", "a"], {(1, 1): 1.0})],
        },
    )


def test_what_we_write_is_read_again_and_written_again_equal(
    atlas: aa.Atlas, tmp_path: Path
) -> None:
    first = aa.to_headvis(atlas, tmp_path / "first")
    back = aa.from_headvis(first, path=tmp_path / "back.atlas")
    second = aa.to_headvis(back, tmp_path / "second")
    names = sorted(str(path.relative_to(first)) for path in first.rglob("*.json"))
    assert "heads/L0H4.json" in names and len(names) == 4 + 5
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    for number in range(len(atlas)):
        assert back.tokens(number)["text"].tolist() == atlas.tokens(number)["text"].tolist()
        for head in range(5):
            whole = atlas.weights(number, f"L0H{head}")
            kept = np.zeros_like(whole)
            best = np.argsort(-whole, axis=1, kind="stable")[:, :8]
            np.put_along_axis(kept, best, np.take_along_axis(whole, best, 1), 1)
            kept[kept < 0.005] = 0
            # Four digits after the point were written.
            assert np.abs(back.weights(number, f"L0H{head}") - kept).max() <= 0.5e-4 + 1e-7


def test_nothing_is_lost_if_nothing_is_cut(atlas: aa.Atlas, tmp_path: Path) -> None:
    folder = aa.to_headvis(atlas, tmp_path / "whole", top=None, threshold=0, digits=None)
    back = aa.from_headvis(folder)
    for number in range(len(atlas)):
        assert (back.weights(number, "L0H2") == atlas.weights(number, "L0H2")).all()


def test_metrics_are_those_of_headvis_by_plain_loops(atlas: aa.Atlas, tmp_path: Path) -> None:
    folder = aa.to_headvis(atlas, tmp_path / "x")
    row = json.loads((folder / "scatter_data.json").read_text())[1]
    assert (row["layer"], row["head"]) == (0, 1)
    own, before, entropy, far, squared, mass, followed, rows, later = (0.0,) * 9
    for number in range(len(atlas)):
        weights = atlas.weights(number, "L0H1").astype(np.float64)
        words = atlas.tokens(number)["text"].tolist()
        for q in range(len(words)):
            rows += 1
            later += q > 0
            own += weights[q, q]
            before += weights[q, q - 1] if q else 0
            entropy -= sum(w * np.log(w) for w in weights[q] if w > 0)
            for k in range(len(words)):
                far += abs(q - k) * weights[q, k]
                squared += (q - k) ** 2 * weights[q, k]
                mass += weights[q, k]
            followed += sum(weights[q, j + 1] for j in range(q) if words[j] == words[q])
    assert row["self_attention_score"] == pytest.approx(own / rows)
    assert row["previous_token_score"] == pytest.approx(before / later)
    assert row["pattern_entropy"] == pytest.approx(entropy / rows)
    assert row["qk_distance"] == pytest.approx(far / mass)
    assert row["qk_distance_variance"] == pytest.approx(squared / mass - (far / mass) ** 2)
    assert row["induction_score"] == pytest.approx(followed / rows)


def test_a_head_file_has_what_the_form_asks_for(atlas: aa.Atlas, tmp_path: Path) -> None:
    folder = aa.to_headvis(atlas, tmp_path / "x")
    config = json.loads((folder / "config.json").read_text())
    assert config["heads"] == [[0, head] for head in range(5)] and config["has_umap"] is False
    payload = json.loads((folder / "heads" / "L0H1.json").read_text())
    largest = {}
    for one in payload["sequences"]:
        n = one["seq_len"]
        assert n == len(one["tokens"]) and 1 <= one["interval"] <= 10
        whole = atlas.weights(one["sequence_id"], "L0H1")
        assert one["max_activation"] == pytest.approx(whole[1:, 1:].max(), abs=0.5e-4)
        for index, value in zip(one["attention_indices"], one["attention_values"], strict=True):
            assert value == pytest.approx(whole[index // n, index % n], abs=0.5e-4)
        largest[one["interval"]] = whole[1:, 1:].max()
    assert sorted(largest, reverse=True)[0] == 10
    assert [largest[i] for i in sorted(largest)] == sorted(largest.values())
    edges, values = payload["qk_distance_histogram"].values()
    assert len(edges) == len(values) + 1 and sum(values) == sum(
        len(one["attention_indices"]) for one in payload["sequences"]
    )
    weights = [token["weight"] for token in payload["top_key_tokens"]]
    assert weights == sorted(weights, reverse=True) and weights


def test_an_export_made_by_hand_is_read(export: Path) -> None:
    atlas = aa.from_headvis(export)
    assert atlas.manifest.model == "gpt2" and atlas.towers[0].depth == 12
    assert atlas.inputs()["sequence_id"].tolist() == [3, 7]
    assert atlas.tokens(1)["text"].tolist() == HAND
    expected = np.zeros((4, 4), np.float32)
    for place, value in FIRST.items():
        expected[place] = value
    assert (atlas.weights(1, "L5H0") == expected).all()
    metrics = atlas.manifest.options["headvis"]["metrics"]
    assert metrics[1] == {"layer": 5, "head": 1, "induction_score": 0.25, "logit_std": 1.5}
    assert "no receipt" in atlas.receipt.line and not atlas.receipt.exact
    with pytest.raises(aa.PickError, match="3 of 4 pairs of head and sequence"):
        atlas.measure(progress=False)


def test_one_head_of_an_export_is_read_alone(export: Path) -> None:
    atlas = aa.from_headvis(export, heads=["L5H0"])
    assert atlas.inputs()["sequence_id"].tolist() == [7]
    with pytest.raises(aa.PickError, match="no head L0H0; it has L5H0 to L5H1"):
        aa.from_headvis(export, heads=["L0H0"])


def _with(change: dict[str, Any]) -> dict[str, Any]:
    return {"sequences": [sequence(7, HAND, FIRST) | change]}


DEEP = "[" * 100_000
WRONG: dict[str, tuple[str, Any]] = {
    "a list as config": ("config.json", []),
    "no heads": ("config.json", {"model_name": "x", "heads": []}),
    "a head of text": ("config.json", {"heads": [["0", 0]]}),
    "a head below zero": ("config.json", {"heads": [[-1, 0]]}),
    "a head twice": ("config.json", {"heads": [[5, 0], [5, 0]]}),
    "a path as pattern": (
        "config.json", {"heads": [[5, 0]], "head_data_pattern": "../L{layer}H{head}.json"},
    ),
    "an absolute path": (
        "config.json", {"heads": [[5, 0]], "head_data_pattern": "/etc/L{layer}H{head}.json"},
    ),
    "a drive": ("config.json", {"heads": [[5, 0]], "head_data_pattern": "C:L{layer}H{head}.json"}),
    "no JSON": ("config.json", "{"),
    "deep JSON": ("config.json", DEEP),
    "NaN": ("scatter_data.json", '[{"layer": 5, "head": 0, "x": NaN}]'),
    "infinity": ("scatter_data.json", '[{"layer": 5, "head": 0, "x": 1e999}]'),
    "a million digits": ("scatter_data.json", f'[{{"layer": 5, "head": {"9" * 4000}}}]'),
    "an unknown head": ("scatter_data.json", [{"layer": 5, "head": 9}]),
    "a metric of text": ("scatter_data.json", [{"layer": 5, "head": 0, "x": "high"}]),
    "no sequences": ("heads/L5H0.json", {}),
    "numbers as tokens": ("heads/L5H0.json", _with({"tokens": [1, 2, 3, 4]})),
    "half a character": ("heads/L5H0.json", _with({"tokens": ["\ud800", "a", "b", "c"]})),
    "a wrong length": ("heads/L5H0.json", _with({"seq_len": 10**9})),
    "an index outside": ("heads/L5H0.json", _with({"attention_indices": [0, 1, 2, 3, 16]})),
    "an index below zero": ("heads/L5H0.json", _with({"attention_indices": [0, 1, 2, 3, -1]})),
    "an index twice": ("heads/L5H0.json", _with({"attention_indices": [0, 1, 2, 3, 3]})),
    "a huge index": ("heads/L5H0.json", _with({"attention_indices": [0, 1, 2, 3, 10**400]})),
    "an index of text": ("heads/L5H0.json", _with({"attention_indices": [0, 1, 2, 3, "4"]})),
    "fewer values": ("heads/L5H0.json", _with({"attention_values": [0.5]})),
    "a weight above one": (
        "heads/L5H0.json", _with({"attention_values": [0.5, 0.5, 0.5, 0.5, 3.0]}),
    ),
    "a weight below zero": (
        "heads/L5H0.json", _with({"attention_values": [0.5, 0.5, 0.5, 0.5, -1]}),
    ),
    "other tokens": ("heads/L5H0.json", _with({"tokens": ["<s>", "the", "dog", "the"]})),
    "a sequence twice": (
        "heads/L5H0.json", {"sequences": [sequence(7, HAND, FIRST), sequence(7, HAND, FIRST)]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_end_in_a_sentence(case: str, export: Path) -> None:
    name, content = WRONG[case]
    if isinstance(content, str):
        (export / name).write_text(content)
    else:
        put(export / name, content)
    with pytest.raises(aa.StoreError) as problem:
        aa.from_headvis(export)
    assert 20 < len(str(problem.value)) < 500 and "\n" not in str(problem.value)


@pytest.mark.parametrize("name", ["config.json", "scatter_data.json", "heads/L5H1.json"])
def test_a_missing_file_is_named(name: str, export: Path) -> None:
    (export / name).unlink()
    with pytest.raises(aa.StoreError, match=f"{Path(name).name} is missing"):
        aa.from_headvis(export)


def test_what_would_not_fit_is_refused_before_anything_is_written(
    export: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("attention_atlas.ways.headvis_read._MOST_BYTES", 100)
    with pytest.raises(aa.InputError, match="name some heads"):
        aa.from_headvis(export, path=tmp_path / "x.atlas")
    assert not (tmp_path / "x.atlas").exists()


def test_the_command_writes_headvis_and_arrays(atlas: aa.Atlas, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from attention_atlas.cli.app import app

    out, arrays = tmp_path / "out", tmp_path / "w.npz"
    for asked in ([str(out), "--format", "headvis"], [str(arrays)]):
        told = CliRunner().invoke(app, ["export", str(atlas.path), *asked])
        assert told.exit_code == 0, told.output
    assert (out / "config.json").is_file()
    with np.load(arrays) as held:
        assert (held["input2.decoder.L0"][3] == atlas.weights(2, "L0H3")).all()
    with pytest.raises(aa.InputError, match="not empty"):
        aa.to_headvis(atlas, tmp_path)
