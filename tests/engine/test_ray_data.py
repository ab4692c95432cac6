"""A model inside somebody's Ray Data pipeline gives what an atlas of the same texts has."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from attention_atlas.measure.measures import MEASURES

TEXTS = ["The cat sat on the mat.", "It rained, and then it rained again and again.", "Yes."]
PAIRS = [("Who came?", "Nobody came at all."), ("Why?", "Because."), ("When?", "At noon, he said.")]


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    path = tmp_path_factory.mktemp("ray-data") / "x.atlas"
    return aa.capture("builtin:gpt", TEXTS, path=path, progress=False)


def batch(**columns: Any) -> dict[str, Any]:
    return {name: np.array(values, object) for name, values in columns.items()}


def test_scores_of_a_batch_have_the_means_of_the_atlas(atlas: aa.Atlas) -> None:
    got = aa.ray.Capture("builtin:gpt", device="cpu")(batch(text=TEXTS, id=[7, 8, 9]))
    assert list(got["id"]) == [7, 8, 9] and list(got["text"]) == TEXTS
    heads = list(atlas.heads()["head"])
    assert all(row == heads for row in got["heads"])
    assert [row[-1] for row in got["tokens"]] == [
        atlas.tokens(input=number)["text"].iloc[-1] for number in range(3)
    ]
    table = atlas.measure(progress=False).table
    of_texts = [name for name, one in MEASURES.items() if one.needs not in ("patches", "mixed")]
    assert {f"score.{name}" for name in of_texts} == {n for n in got if n.startswith("score.")}
    for name in ("entropy", "previous", "norm-gap"):
        values = got[f"score.{name}"]
        assert values.shape == (3, len(heads)) and values.dtype == np.float32
        stored = table[table["measure"] == name].set_index("head")["value"]
        rounding = 4 * np.finfo(np.float32).eps * np.abs(values).max()
        assert np.allclose(np.nanmean(values, 0, dtype=float), stored[heads], rtol=0, atol=rounding)


def test_vectors_of_a_batch_are_those_of_the_atlas(atlas: aa.Atlas) -> None:
    capture = aa.ray.Capture(
        "builtin:gpt", device="cpu", scores=False, vectors=("query", "key", "value")
    )
    got = capture(batch(text=TEXTS))
    assert not [name for name in got if name.startswith("score.")]
    for number in range(3):
        for what, read in (("query", atlas.queries), ("key", atlas.keys), ("value", atlas.values)):
            expected = read(head="L2H1", input=number)
            assert np.array_equal(got[f"{what}.decoder.L2"][number][1], expected)


def test_later_batches_need_not_be_like_the_first() -> None:
    """The first batch has one input, so padding could not be tried; the next is padded."""
    capture = aa.ray.Capture("builtin:gpt", device="cpu", scores=["entropy"])
    assert capture(batch(text=["One."]))["score.entropy"].shape == (1, 36)
    later = capture(batch(text=TEXTS))["score.entropy"]
    fresh = aa.ray.Capture("builtin:gpt", device="cpu", scores=["entropy"])
    assert np.array_equal(later, fresh(batch(text=TEXTS))["score.entropy"])


def test_pairs_have_two_columns() -> None:
    first, second = map(list, zip(*PAIRS, strict=True))
    capture = aa.ray.Capture(
        "builtin:bert", device="cpu", column="q", second_column="a", scores=["entropy"]
    )
    got = capture(batch(q=first, a=second))
    atlas = aa.capture("builtin:bert", PAIRS, device="cpu", progress=False)
    tokens = [list(atlas.tokens(input=number)["text"]) for number in range(3)]
    assert [list(row) for row in got["tokens"]] == tokens


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scores": ["beauty"]}, "no measure is named 'beauty'; there are: .*entropy"),
        ({"vectors": ["quest"]}, "no vectors are named 'quest'; there are: query, key, value"),
        ({"batch_size": 0}, "give a batch size of at least 1"),
    ],
)
def test_what_there_is_not_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(aa.InputError, match=message):
        aa.ray.Capture("builtin:gpt", **wrong)


def test_a_column_that_is_missing_is_named() -> None:
    capture = aa.ray.Capture("builtin:gpt", device="cpu")
    with pytest.raises(aa.InputError, match="no column 'text'; it has body; name the column"):
        capture(batch(body=TEXTS))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # Ray Data warns of its own settings
def test_ray_data_runs_it_and_writes_what_it_returns(ray: Any, tmp_path: Path) -> None:
    import pandas as pd

    import_module("ray.data")
    ray.data.DataContext.get_current().enable_progress_bars = False
    dataset = ray.data.from_items([{"text": text, "id": n} for n, text in enumerate(TEXTS * 4)])
    options: dict[str, Any] = {"model": "builtin:gpt", "device": "cpu", "vectors": ["query"]}
    done = dataset.map_batches(
        aa.ray.Capture, fn_constructor_kwargs=options, batch_size=4, concurrency=(1, 2), num_cpus=1
    )
    rows = sorted(done.take_all(), key=lambda row: row["id"])
    direct = aa.ray.Capture(**options)(batch(text=TEXTS))
    assert [row["id"] for row in rows] == list(range(12))
    for row in rows:
        place = row["id"] % 3
        assert list(row["heads"]) == list(direct["heads"][0])
        assert list(row["tokens"]) == list(direct["tokens"][place])
        assert row["query.decoder.L0"].shape == direct["query.decoder.L0"][place].shape
        expected = direct["score.entropy"][place]
        # Batches differ, so sums of a padded batch may round in another way.
        assert np.allclose(row["score.entropy"], expected, rtol=0, atol=1e-5)
    done.select_columns(["id", "tokens", "score.entropy"]).write_parquet(str(tmp_path / "out"))
    assert len(pd.read_parquet(tmp_path / "out", columns=["id"])) == 12
