"""Does a whole atlas get its maps, whole or not at all, and again after a kill?"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import attention_atlas as aa
from attention_atlas.atlas import Atlas
from attention_atlas.engine.local import Local
from attention_atlas.layout import chunk, device, run
from attention_atlas.layout.packed import packed_places
from attention_atlas.layout.plan import Options, plan
from attention_atlas.layout.run import Layout, layout_atlas
from attention_atlas.layout.sample import sample
from attention_atlas.layout.warm import warm_up
from attention_atlas.names.errors import InputError, StoreError
from attention_atlas.store.maps import FIGURES, read_map

TEXTS = ["The old doctor walks home because it is late.", "A cat sleeps.", "Who sold the bridge?"]


@pytest.fixture
def atlas(tmp_path: Path) -> Atlas:
    return aa.capture("builtin:gpt", TEXTS, path=tmp_path / "x.atlas", progress=False)


@pytest.fixture(autouse=True)
def _head_by_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few points would be one chunk."""
    monkeypatch.setattr(device, "POINTS_AT_ONCE", 1)


def test_a_layout_is_made_once_and_then_read(atlas: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    made = layout_atlas(atlas, Options("pca"), progress=False)
    monkeypatch.setattr(run, "make_chunk", lambda *_: pytest.fail("made again"))
    again = layout_atlas(atlas, Options("pca"), progress=False)
    for name, group in made.groups.items():
        assert (again.groups[name].places == group.places).all()
        assert again.groups[name].heads == group.heads
    assert again.options["asked"]["joint"] == "attention"
    assert [path.name for path in (atlas.path / "layouts").iterdir()] == ["pca-2d.safetensors"]


def test_every_head_has_places_a_box_figures_and_c(atlas: Atlas) -> None:
    made = layout_atlas(atlas, Options("pca", dims=3), progress=False)
    tokens = len(atlas.tokens())
    for group in made.groups.values():
        assert group.places.shape == (len(group.heads), 2 * tokens, 3)
        assert group.fidelity.shape == (len(group.heads), len(FIGURES))
        assert (group.c > 0).all()
        assert group.query_tokens.tolist() == list(range(tokens))
    places, figures = made.of("L0H1")
    assert places.shape == (2 * tokens, 3)
    assert -1 <= figures["full.correlation"] < 0


def test_a_killed_layout_goes_on_where_it_stopped(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = chunk.make_chunk, []

    def dies_at_the_fourth(*asked: object) -> object:
        calls.append(asked)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "make_chunk", dies_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        layout_atlas(atlas, Options("pca"), progress=False)
    assert not (atlas.path / "layouts" / "pca-2d.safetensors").exists()
    layout_atlas(atlas, Options("pca"), progress=False)
    assert len(calls) == 1 + len(atlas.heads())  # only the one that died is made again


@pytest.mark.full
def test_processes_give_the_same_map_as_one(atlas: Atlas, tmp_path: Path) -> None:
    alone = layout_atlas(atlas, Options("pca"), progress=False, engine=Local(1))
    path = atlas.path / "layouts" / "pca-2d.safetensors"
    path.rename(tmp_path / "alone.safetensors")
    shared = layout_atlas(atlas, Options("pca"), progress=False, engine=Local(2))
    for name, group in alone.groups.items():
        assert (shared.groups[name].places == group.places).all()


def test_an_atlas_without_keys_says_so(tmp_path: Path) -> None:
    atlas = aa.capture(
        "builtin:gpt", TEXTS, path=tmp_path / "y.atlas", keep=("query",), progress=False
    )
    with pytest.raises(StoreError, match="captured without keys"):
        layout_atlas(atlas, Options("pca"), progress=False)


def test_a_damaged_layout_is_refused(atlas: Atlas) -> None:
    path = atlas.path / "layouts" / "pca-2d.safetensors"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"not a map")
    with pytest.raises(StoreError, match="missing or damaged"):
        read_map(path)


def test_unpacked_places_are_within_half_a_step_of_the_real_ones() -> None:
    places = np.random.default_rng(0).normal(size=(2, 50, 3)).astype(np.float32)
    packed, box = packed_places(torch.from_numpy(places))
    back = box[:, :1] + packed / 65535 * (box[:, 1:] - box[:, :1])
    assert np.abs(back - places).max() <= (box[:, 1] - box[:, 0]).max() / 65535 * 0.51


def test_balanced_sampling_shows_more_of_the_rare_tokens() -> None:
    table = pd.DataFrame({"text": ["the"] * 900 + [f"rare{i}" for i in range(100)]})
    rare = {name: (sample(table, 100, name, 0) >= 900).sum() for name in ("uniform", "balanced")}
    assert rare["uniform"] < 20 < 50 < rare["balanced"]
    assert (sample(table, 100, "balanced", 0) == sample(table, 100, "balanced", 0)).all()


def test_a_sample_of_all_or_of_none() -> None:
    table = pd.DataFrame({"text": ["a", "b"]})
    assert sample(table, 5, "uniform", 0).tolist() == [0, 1]
    with pytest.raises(InputError, match="at least 1 token"):
        sample(table, 0, "uniform", 0)
    with pytest.raises(InputError, match="there are: inputs, uniform, balanced"):
        sample(table, 1, "stratified", 0)


def test_a_sample_of_inputs_keeps_queries_with_their_keys() -> None:
    table = pd.DataFrame({"text": "a", "input": np.repeat(np.arange(40), 10)})
    rows = sample(table, 100, "inputs", 0)
    inputs, counts = np.unique(rows // 10, return_counts=True)
    assert len(rows) == 100
    assert len(inputs) == 10
    assert (counts == 10).all()
    assert (sample(table, 100, "inputs", 1) != rows).any()


def test_a_sample_of_long_inputs_takes_their_beginnings() -> None:
    table = pd.DataFrame({"text": "a", "input": np.repeat([0, 1, 2], 4000)})
    rows = sample(table, 1500, "inputs", 0)
    assert (np.diff(rows[rows < 4000]) == 1).all()
    assert {int(row % 4000) for row in rows} == set(range(500))
    assert len(sample(table[:4000], 1500, "inputs", 0)) == 1500


def test_a_head_with_nan_has_no_map_and_the_others_do(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = type(atlas).layer_vectors

    def broken(self: Atlas, what: str, heads: Sequence[str], rows: np.ndarray) -> np.ndarray:
        vectors = np.array(real(self, what, heads, rows))
        if what == "query" and "L1H1" in heads:
            vectors[list(heads).index("L1H1"), 0, 0] = np.nan
        return vectors

    monkeypatch.setattr(type(atlas), "layer_vectors", broken)
    made = layout_atlas(atlas, Options("pca"), progress=False, engine=Local(1))
    assert made.options["not laid out"].startswith("L1H1: vectors with NaN")
    assert np.isnan(list(made.of("L1H1")[1].values())).all()
    assert (made.of("L1H1")[0] == made.of("L1H1")[0][0]).all()
    assert made.of("L1H2")[1]["map.visible"] < 0
    assert np.isfinite(made.of("L1H0")[0]).all()
    assert "not laid out" in read_map(atlas.path / "layouts" / "pca-2d.safetensors").options


def test_one_token_makes_a_map_without_figures(tmp_path: Path) -> None:
    atlas = aa.capture("builtin:gpt", ["a"], path=tmp_path / "x.atlas", progress=False)
    made = layout_atlas(atlas, Options("umap"), progress=False)
    places, figures = made.of("L0H0")
    assert np.isfinite(places).all()
    assert np.isnan(figures["map.strongest"])


def test_the_vectors_of_some_heads_of_a_layer_are_those_of_each_head(tmp_path: Path) -> None:
    """In several files, for rows in any order, and where heads share their keys."""
    from tests import atlases

    path = tmp_path / "some.atlas"
    several = aa.capture("builtin:gpt", TEXTS, path=path, shard_bytes=20_000, progress=False)
    assert len(several.manifest.shards) > 1
    for made in (several, atlases.seq2seq(tmp_path)):
        tower = made.towers[-1]
        prefix = f"{tower.name}." if len(made.towers) > 1 else ""
        heads = [f"{prefix}L1H{head}" for head in reversed(range(tower.layers[1].heads))]
        for what, whole in (("query", made.queries), ("key", made.keys)):
            rows = np.random.default_rng(0).permutation(len(whole(heads[0])))[:9]
            got = made.layer_vectors(what, heads, rows)
            assert (got == np.stack([whole(head)[rows] for head in heads])).all()


def test_vectors_read_ahead_are_those_of_their_chunk(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU's run does, which reads one chunk while it computes another."""
    monkeypatch.setattr(run, "warm_up", lambda *_: None)  # there may be no GPU
    options = Options("umap", device="cuda")
    layout = Layout(atlas, options, plan(atlas, options))
    chunks: list[dict[str, Any]] = [{"task": 0, "heads": [0, 5]}, {"task": 0, "heads": [5, 12]}]
    layout.vectors(chunks[0], chunks[1])
    assert list(layout.ahead) == [str(chunks[1])]
    ahead = layout.vectors(chunks[1], None)
    assert not layout.ahead
    plain = Layout(atlas, replace(options, device="cpu"), layout.tasks).vectors(chunks[1], None)
    for parts, expected in zip(ahead, plain, strict=True):
        assert len(parts) == 2  # heads 5 to 11 are of two layers of six
        assert all((one == other).all() for one, other in zip(parts, expected, strict=True))


@pytest.mark.parametrize("joint", ["attention", "scale"])
def test_a_device_is_made_ready_by_the_steps_of_a_chunk(joint: str) -> None:
    before = torch.get_rng_state()
    warm_up(Options("umap", 2, joint), 50, 40, 16)
    assert torch.equal(torch.get_rng_state(), before)  # it draws from a generator of its own
