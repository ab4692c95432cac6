"""The demo's maps come with the package and its vectors are captured: do they belong together?"""

from pathlib import Path

import numpy as np
import pytest
import torch

from attention_atlas.layout.fidelity import Dots, TokenInputs, correlation
from attention_atlas.page.live.answers import make_answers
from attention_atlas.page.wire.packing import unpack
from attention_atlas.store.maps import read_map
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.studies import demo

LARGEST = 8_000_000  # bytes that the package may carry for it


@pytest.fixture(scope="module")
def atlases(tmp_path_factory: pytest.TempPathFactory) -> list[StoredAtlas]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        made = demo.demo_atlases()
        patch.setattr(demo, "_capture", lambda *_: pytest.fail("captured twice"))
        assert [one.path for one in demo.demo_atlases()] == [one.path for one in made]
    return made


def test_there_are_a_few_hundred_sentences_of_many_kinds() -> None:
    found = demo.sentences()
    assert 200 <= len(found) <= 400
    assert len({one["text"] for one in found}) == len(found)
    topics = {one["topic"] for one in found}
    assert {"pronouns", "lists", "quotations", "numbers", "names", "questions"} <= topics


def test_the_maps_are_small() -> None:
    assert sum(file.stat().st_size for file in demo.DATA.iterdir()) < LARGEST


@pytest.mark.full
@pytest.mark.parametrize("number", range(len(demo.MODELS)))
def test_the_maps_are_of_the_vectors_that_are_captured(
    atlases: list[StoredAtlas], number: int
) -> None:
    """The figure that was stored with a map comes out again from fresh vectors and its places."""
    atlas = atlases[number]
    path = atlas.path / "layouts" / "umap-2d.safetensors"
    made = read_map(path)
    (group,) = made.groups.values()
    column = made.figures.index("map.correlation")
    input_of = torch.from_numpy(atlas.tokens()["input"].to_numpy(np.int64))
    tokens = TokenInputs(input_of[group.query_tokens], input_of[group.key_tokens])
    for row in (4, 30):
        head = group.heads[row]
        queries = torch.from_numpy(atlas.queries(head)[group.query_tokens])[None]
        keys = torch.from_numpy(atlas.keys(head)[group.key_tokens])[None]
        places = torch.from_numpy(group.unpacked()[row : row + 1])
        again = float(correlation(Dots(queries, keys, tokens), places))
        assert again == pytest.approx(group.fidelity[row, column], abs=2e-3)


def test_both_open_together_and_can_be_coloured_by_topic(atlases: list[StoredAtlas]) -> None:
    for answers, model in zip(make_answers(atlases), demo.MODELS, strict=True):
        about = unpack(answers.packet("about")[0])
        assert about["model"] == model
        assert [one["name"] for one in about["maps"]] == ["umap-2d", "umap-3d"]
        assert [one["title"] for one in about["atlases"]] == [
            one for one in demo.MODELS if one != model
        ]
        group = about["maps"][0]["groups"][0]["name"]
        points = unpack(answers.packet(f"points/umap-2d/{group}")[0])
        topic = next(one for one in points["columns"] if one["name"] == "topic")
        assert "pronouns" in topic["names"]


def test_where_no_cache_can_be_written_a_temporary_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "attention-atlas-" in demo._home().name
