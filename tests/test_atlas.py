"""Does the façade add its verbs to what is stored, and nothing else?"""

import gc
from pathlib import Path

import attention_atlas as aa
from attention_atlas.page.answers.grown import Grown
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.studies.build import Wanted, build

VERBS = {"layout", "measure", "label"}


def test_what_is_stored_is_only_read_and_the_verbs_are_those_of_the_facade() -> None:
    assert not VERBS & set(dir(StoredAtlas))
    assert not VERBS & set(dir(Grown))
    assert set(dir(aa.Atlas)) >= VERBS


def test_a_temporary_atlas_lives_as_long_as_the_object_that_was_given() -> None:
    atlas = aa.capture("builtin:gpt", "One two three.", progress=False)
    gc.collect()
    folder = atlas.path
    assert type(atlas) is aa.Atlas and folder.is_dir()
    assert atlas.weights(input=0, head="L0H0").ndim == 2
    del atlas
    gc.collect()
    assert not folder.exists()


def test_an_atlas_that_was_built_opens_with_the_verbs(tmp_path: Path) -> None:
    wanted = Wanted(methods=("pca",), device="cpu")
    stored = build("builtin:gpt", "One two three.", tmp_path / "x.atlas", wanted, progress=False)
    atlas = aa.open(stored.path)
    assert type(atlas) is aa.Atlas and atlas.scores() is not None
    assert set(atlas.layout("pca", device="cpu", progress=False).groups) == {"decoder"}
