"""Do all tokens of a head get a place where the map has a sample of them?"""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor
from transformers import GPT2Config, GPT2Model

import attention_atlas as aa
from attention_atlas.atlas import Atlas
from attention_atlas.layout import rest, tsne, umap
from attention_atlas.layout.fidelity import Dots, neighbourhood
from attention_atlas.layout.field import NODES, make_field
from attention_atlas.layout.joint import join
from attention_atlas.layout.methods import lay_out
from attention_atlas.layout.neighbours import as_points, find_neighbours
from attention_atlas.layout.place import Known, place
from attention_atlas.layout.rest import HeadMap, place_head, place_rest
from attention_atlas.models.load import load
from attention_atlas.names.errors import PickError
from attention_atlas.store import files
from attention_atlas.store.all_places import all_places_path, is_placed, map_digest, read_all_places
from attention_atlas.store.maps import Float32, Map
from tests.layout.vectors import joined, sentences

HEAD = "L1H2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers of three heads with random weights: all of them are laid out by each test."""
    torch.manual_seed(0)
    tokenizer = load("builtin:gpt").tokenizer
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=48, n_layer=2, n_head=3)
    path = tmp_path_factory.mktemp("rest") / "x.atlas"
    model = GPT2Model(config).eval()
    aa.capture(model, sentences()[:25], tokenizer=tokenizer, path=path, progress=False)
    return path


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """How good a map is does not matter here."""
    monkeypatch.setattr(
        tsne, "schedule", lambda points, last_steps=1.0: (tsne.Phase(40, 1.0, 0.8, 1.0),)
    )
    monkeypatch.setattr(umap, "JOINED_STEPS", 100)


@pytest.fixture
def atlas(folder: Path, tmp_path: Path) -> Atlas:
    """An atlas of some hundred tokens of which a map has 150."""
    copy = tmp_path / "x.atlas"
    for path in folder.rglob("*"):
        if path.is_file():
            (copy / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(folder)).write_bytes(path.read_bytes())
    return aa.open(copy)


def made(
    atlas: Atlas, method: str = "umap", dims: int = 2, joint: str = "attention"
) -> tuple[Map, Path]:
    layout = atlas.layout(method, dims, tokens=150, joint=joint, progress=False)
    return layout, atlas.path / "layouts" / f"{method}-{dims}d.safetensors"


def unpacked(path: Path) -> tuple[Float32, Float32]:
    """Read all places (N + M, dims) in the map's units, and half a step of their rounding."""
    found = read_all_places(path)
    wide = found.box[1] - found.box[0]
    return (found.box[0] + found.places / 65535 * wide).astype(np.float32), wide / 65535 / 2


@pytest.mark.full
@pytest.mark.parametrize(("method", "dims"), [("umap", 2), ("tsne", 3), ("pca", 2)])
def test_all_tokens_are_placed_as_one_call_would_place_them(
    atlas: Atlas, method: str, dims: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, path = made(atlas, method, dims, "scale")
    monkeypatch.setattr(rest, "BLOCK", 100)
    monkeypatch.setattr(rest, "TOGETHER", 7)
    assert place_rest(atlas, layout, [HEAD], progress=False) == []
    placed, half = unpacked(all_places_path(path, HEAD))

    # The same without blocks, files or packing: queries and keys of the whole atlas at once.
    group = next(iter(layout.groups.values()))
    queries = torch.from_numpy(atlas.queries(HEAD))[None]
    keys = torch.from_numpy(atlas.keys(HEAD))[None]
    q, k = group.query_tokens, group.key_tokens
    some = queries[:, torch.tensor(q)], keys[:, torch.tensor(k)]
    joint = join(*some, layout.options["asked"]["joint"])
    points = as_points(joint.points(*some), joint.metric)
    own = layout.of(HEAD)[0]
    known = Known(points, torch.from_numpy(own)[None], joint.metric, often=True)
    expected = place(as_points(joint.points(queries, keys), joint.metric), known, method)[0].numpy()
    sample = np.concatenate([q, len(atlas.tokens()) + k])
    others = np.setdiff1d(np.arange(len(placed)), sample)
    # A step moves a point by rounding alone at most eps × extent; 20 steps add up.
    slack = half + 64 * np.finfo(np.float32).eps * np.abs(own).max()
    assert (np.abs(placed[sample] - own) <= slack).all()
    # A token as far from two known ones may begin at either; nearly all have one nearest.
    assert (np.abs(placed[others] - expected[others]) <= 4 * slack).all(1).mean() > 0.99


def test_a_map_of_all_tokens_has_their_places_already(atlas: Atlas) -> None:
    layout = atlas.layout("pca", tokens=10_000, progress=False)
    assert place_rest(atlas, layout, [HEAD], progress=False) == []
    placed, half = unpacked(all_places_path(atlas.path / "layouts" / "pca-2d.safetensors", HEAD))
    assert (np.abs(placed - layout.of(HEAD)[0]) <= 1.01 * half + 1e-6).all()


def test_a_killed_run_resumes_and_gives_the_same_bytes(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, path = made(atlas, "pca")
    monkeypatch.setattr(rest, "BLOCK", 100)
    target = all_places_path(path, HEAD)
    place_rest(atlas, layout, [HEAD], progress=False)
    whole = target.read_bytes()
    target.unlink()

    real, calls = HeadMap.place_block, []

    def dies_at_the_third(self: HeadMap, block: rest.TokenBlock) -> Float32:
        calls.append(block)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, block)

    monkeypatch.setattr(HeadMap, "place_block", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        place_rest(atlas, layout, [HEAD], progress=False)
    assert not target.exists()
    place_rest(atlas, layout, [HEAD], progress=False)
    assert target.read_bytes() == whole
    head_map = HeadMap(atlas, layout, HEAD)
    assert len(calls) == 1 + len(head_map.blocks())  # only the one that died is made again
    assert [file.name for file in target.parent.iterdir()] == [target.name]


def test_a_head_is_placed_once_and_again_after_its_map_changed(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, path = made(atlas, "pca")
    place_rest(atlas, layout, [HEAD], progress=False)
    group = next(iter(layout.groups.values()))
    assert is_placed(all_places_path(path, HEAD), map_digest(group, HEAD))
    with monkeypatch.context() as patch:
        patch.setattr(rest, "place_head", lambda *_: pytest.fail("placed again"))
        place_rest(atlas, layout, [HEAD], progress=False)
    other = atlas.layout("pca", tokens=149, progress=False)
    group = next(iter(other.groups.values()))
    assert not is_placed(all_places_path(path, HEAD), map_digest(group, HEAD))
    assert list(rest.heads_to_place(other, path, [HEAD])) == [HEAD]


def test_progress_counts_tokens_and_may_stop_the_run(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, path = made(atlas, "pca")
    monkeypatch.setattr(rest, "BLOCK", 100)
    head_map = HeadMap(atlas, layout, HEAD)
    told: list[tuple[int, int]] = []
    place_head(head_map, path, lambda done, total: told.append((done, total)))
    total = 2 * len(atlas.tokens())
    assert told[0] == (0, total) and told[-1] == (total, total)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def spoil(atlas: Atlas, value: float, tokens: slice) -> Atlas:
    """Overwrite the keys of layer 1 of some tokens, and the checksum that guards them."""
    manifest = files.read_json(atlas.path / "atlas.json")
    shard = atlas.path / manifest["shards"][0]["file"]
    tensors = load_file(shard)
    name = next(name for name in tensors if name.endswith(".L1.key"))
    tensors[name][:, tokens] = value
    save_file(tensors, shard)
    manifest["shards"][0].update(bytes=shard.stat().st_size, checksum=files.checksum(shard))
    files.write_json(atlas.path / "atlas.json", manifest)
    return aa.open(atlas.path)


def test_nan_among_the_rest_leaves_that_head_with_its_sample(atlas: Atlas) -> None:
    layout, path = made(atlas, "pca")
    group = next(iter(layout.groups.values()))
    bad = int(np.setdiff1d(np.arange(len(atlas.tokens())), group.key_tokens)[0])
    spoilt = spoil(atlas, np.nan, slice(bad, bad + 1))
    troubles = place_rest(spoilt, layout, ["L0H0", HEAD], progress=False)
    assert troubles == [
        f"{HEAD} keeps to its sample: 1 of its key vectors hold NaN or infinity; "
        "capture the model in float32"
    ]
    assert all_places_path(path, "L0H0").is_file()
    assert not all_places_path(path, HEAD).exists()


def test_equal_keys_are_placed_where_their_sample_lies(atlas: Atlas) -> None:
    spoilt = spoil(atlas, 0.5, slice(None))
    layout, path = made(spoilt)
    assert place_rest(spoilt, layout, [HEAD], progress=False) == []
    placed, _ = unpacked(all_places_path(path, HEAD))
    assert np.isfinite(placed).all()


def test_a_head_that_is_not_on_the_map_is_refused(atlas: Atlas) -> None:
    layout, _ = made(atlas, "pca")
    with pytest.raises(PickError, match="no head 'L9H9'"):
        place_rest(atlas, layout, ["L9H9"], progress=False)


def test_the_command_places_all_tokens_of_the_heads_it_is_given(atlas: Atlas) -> None:
    from typer.testing import CliRunner

    from attention_atlas.cli.app import app

    asked = ["layout", str(atlas.path), "--method", "pca", "--tokens", "150"]
    done = CliRunner().invoke(app, [*asked, "--all-tokens", "--head", "L0H1"])
    assert done.exit_code == 0, done.output
    assert [path.name for path in (atlas.path / "layouts" / "pca-2d.all").iterdir()] == [
        "L0H1.safetensors"
    ]


# The field -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [2, 3])
def test_a_field_that_is_linear_is_read_exactly(dims: int) -> None:
    numbers = torch.Generator().manual_seed(0)
    places = torch.randn(2, 50, dims, generator=numbers)
    slope = torch.randn(dims, dims, generator=numbers)
    field = make_field(places, lambda at: at @ slope)
    # 2^dims corners, each off by a few roundings of numbers as large as the extent.
    slack = 2**dims * 16 * torch.finfo(torch.float32).eps * places.abs().max() * slope.abs().sum()
    assert (field.at(places) - places @ slope).abs().max() <= slack
    assert field.pushes.shape == (2, NODES[dims] ** dims, dims)


@pytest.mark.full
def test_left_out_points_keep_their_neighbours_as_well_by_the_mesh(minilm: Dots) -> None:
    points = joined(minilm)
    order = torch.randperm(points.shape[1], generator=torch.Generator().manual_seed(0))
    known, new = points[:, order[:400]], points[:, order[400:]]
    places = lay_out(known, "umap", 2, find_neighbours(known, 14))

    def figures(often: bool) -> Tensor:
        placed = place(new, Known(known, places, "cosine", often), "umap")
        rows = torch.arange(400, points.shape[1])
        both = neighbourhood(points[:, order], torch.cat([places, placed], 1), rows)
        return torch.stack(both)

    direct, meshed = figures(False), figures(True)
    assert (meshed[0] > 0.9).all()
    # The share kept is a mean over rows × 15 draws: four standard errors of a share.
    rows = 15 * (points.shape[1] - 400)
    assert (meshed[1] > direct[1] - 4 * 0.5 / rows**0.5).all()
