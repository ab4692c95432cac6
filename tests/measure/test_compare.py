"""Heads alike, models side by side, trees, statistics, what is worth a look."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import jensenshannon

import attention_atlas as aa
from attention_atlas.measure.align import aligned, cuts, onto
from attention_atlas.measure.alike import alike, clusters, gather, sample_rows, scaled
from attention_atlas.measure.anomalies import anomalies, worth_a_look
from attention_atlas.measure.card import card
from attention_atlas.measure.importance import importance_table, statistics
from attention_atlas.store.scores import Scores
from tests.atlases import OTHER, SENTENCE
from tests.tolerance import reading_tolerance

TEXTS: list[Any] = [SENTENCE, OTHER, "One, two, three, four, one, two, three, four."]
TREE = """# text = The cat saw dogs.
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tsaw\tsee\tVERB\t_\t_\t0\troot\t_\t_
4\tdogs\tdog\tNOUN\t_\t_\t3\tobj\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_
"""


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    path = tmp_path_factory.mktemp("compare") / "gpt.atlas"
    atlas = aa.capture("builtin:gpt", TEXTS, path=path, progress=False)
    atlas.measure(progress=False)
    return atlas


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    path = tmp_path_factory.mktemp("compare") / "bert.atlas"
    return aa.capture("builtin:bert", TEXTS[:2], path=path, progress=False)


# Statistics --------------------------------------------------------------------------------------


def test_statistics_of_importance_are_those_of_table_1() -> None:
    made = statistics([0.2, 0.4, 0.9, 0.5])
    assert made["Number of heads"] == 4
    assert made["Mean"] == pytest.approx(0.5)
    assert made["RI"] == pytest.approx(np.sqrt((0.09 + 0.01 + 0.16 + 0) / 4))
    assert (made["Min"], made["50%"], made["Max"]) == pytest.approx((0.2, 0.45, 0.9))


def test_a_causal_model_has_importance_1_and_ri_0_and_a_corrected_version(gpt: aa.Atlas) -> None:
    scores = gpt.measure()
    table: Any = importance_table(scores)
    assert table.loc["Mean", "all heads"] == table.loc["Min", "all heads"] == 1
    assert table.loc["RI", "all heads"] == 0
    chosen: Any = importance_table(scores, "importance-chosen")
    assert chosen.loc["RI", "all heads"] > 0.05
    assert sum(table.loc["Number of heads"].iloc[1:]) == 36


# Heads alike -------------------------------------------------------------------------------------


def test_divergence_is_that_of_scipy(gpt: aa.Atlas) -> None:
    made = alike(gpt)
    heads, attention = gather(gpt, sample_rows(gpt, 0))
    a, b = heads.index("L3H2"), heads.index("L0H1")
    rows = [
        jensenshannon(one[a, row], one[b, row], 2) ** 2
        for one in attention
        for row in range(one.shape[1])
    ]
    assert made.divergence[a, b] == pytest.approx(np.mean(rows), abs=1e-4)
    assert made.divergence == pytest.approx(made.divergence.T, abs=1e-5)
    assert made.nearest("L3H2", 2)[0][1] <= made.nearest("L3H2", 2)[1][1]


def test_clusters_and_the_map_follow_planted_groups() -> None:
    place = np.array([0.0, 0.01, 0.02, 0.9, 0.91, 0.5])
    away = np.abs(np.subtract.outer(place, place)) ** 2
    assert clusters(away, cut=0.05).tolist() == [0, 0, 0, 1, 1, 2]
    on_map = scaled(away)
    again = np.linalg.norm(on_map[:, None] - on_map[None], axis=2) ** 2
    assert again == pytest.approx(away, abs=1e-9)


# Two models --------------------------------------------------------------------------------------


def test_a_model_compared_with_itself_finds_each_head_again(gpt: aa.Atlas) -> None:
    made = aa.compare(gpt, gpt)
    assert not made.aligned and made.shared == 3
    assert all(made.nearest(head)[0] == head for head in made.heads[0])
    assert np.diag(made.between(0, 1)) == pytest.approx(np.zeros(36), abs=1e-6)
    changed = made.changed()
    assert changed is not None and changed[0][1] == pytest.approx(0, abs=1e-6)
    assert made.names == ("builtin:gpt (gpt.atlas) (0)", "builtin:gpt (gpt.atlas) (1)")


@pytest.mark.full
def test_heads_of_two_models_are_as_far_apart_as_scipy_says(gpt: aa.Atlas, tmp_path: Path) -> None:
    other = aa.capture("builtin:gpt", TEXTS[1:], path=tmp_path / "o.atlas", progress=False)
    made = aa.compare(gpt, other)
    assert made.inputs == ((1, 0), (2, 1))

    def plainly(one: str, two: str) -> float:
        rows = [
            jensenshannon(gpt.weights(i, one)[row], other.weights(j, two)[row], 2) ** 2
            for i, j in made.inputs
            for row in range(1, len(gpt.tokens(i)))
        ]
        return float(np.mean(rows))

    away = made.between(0, 1)
    for one, two in (("L3H2", "L0H1"), ("L5H5", "L2H0"), ("L4H1", "L4H1")):
        place = made.heads[0].index(one), made.heads[1].index(two)
        assert away[place] == pytest.approx(plainly(one, two), abs=1e-4)
    head, nearest, bits = made.apart()[0]
    assert bits == pytest.approx(min(plainly(head, two) for two in made.heads[1]), abs=1e-4)
    assert bits == max(one[2] for one in made.apart()) and made.nearest(head)[0] == nearest


@pytest.mark.full
def test_a_comparison_is_of_the_shared_inputs_alone(gpt: aa.Atlas, bert: aa.Atlas) -> None:
    made: Any = aa.compare(gpt, bert, gpt)
    assert made.shared == 2 and len(made.names) == 3
    assert "2 inputs are in all (of 3 and 2 and 3); everything here is of these" in made.note
    for name, atlas in zip(made.names, (gpt, bert, gpt), strict=True):
        largest = [
            np.mean([atlas.weights(i, head)[first:].max() for i in (0, 1)])
            for head in atlas.heads()["head"]
            for first in [1 if atlas is gpt else 0]
        ]
        column = made.statistics_chosen[name]
        off = max(reading_tolerance(atlas, i) for i in (0, 1))
        assert column["Mean"] == pytest.approx(np.mean(largest), abs=off)
        assert column["RI"] == pytest.approx(np.std(largest), abs=off)
        assert column["25%"] == pytest.approx(np.quantile(largest, 0.25), abs=off)
    assert made.changed(1) is not None and made.changed(2)[0][1] == pytest.approx(0, abs=1e-6)


def test_different_tokenizers_are_aligned_by_characters_and_it_is_said(
    gpt: aa.Atlas, bert: aa.Atlas
) -> None:
    made: Any = aa.compare(gpt, bert)
    assert made.aligned and "aligned by characters" in made.note and made.shared == 2
    assert made.between(0, 1).shape == (36, 36)
    assert made.statistics.loc["RI"].tolist()[0] == 0
    # The previous-token head of one finds a previous-token head of the other.
    assert made.nearest("L3H2")[0] in ("L2H0", "L2H3", "L2H4")
    assert made.kinds.sum().tolist() == [36, 36]


def test_alignment_spreads_a_token_over_its_characters() -> None:
    whole = pd.DataFrame({"start": [-1, 0, 3], "end": [-1, 3, 5]})  # [CLS] abc de
    parts = pd.DataFrame({"start": [0, 1, 3], "end": [1, 3, 5]})  # a bc de
    pieces = cuts(whole, parts)
    assert pieces == [(0, 1), (1, 3), (3, 5)]
    weights = np.array([[[1, 0, 0], [0.5, 0.3, 0.2], [0.4, 0, 0.6]]])
    share = onto(pieces, whole)
    made = aligned(weights[:, 1:], share, np.arange(3))  # [CLS] looks for no piece
    # Row "a" looks as "abc" does: 0.3 on abc, a third of it on "a"; 0.2 on "de"; [CLS] is left out.
    assert made[0, 0] == pytest.approx(np.array([0.1, 0.2, 0.2]) / 0.5)
    assert made[0, 2] == pytest.approx([0, 0, 1])


def test_atlases_without_a_common_text_cannot_be_compared(gpt: aa.Atlas, tmp_path: Path) -> None:
    other = aa.capture("builtin:gpt", "Rain.", path=tmp_path / "rain.atlas", progress=False)
    with pytest.raises(aa.InputError, match="no input in common"):
        aa.compare(gpt, other)


# What is worth a look ----------------------------------------------------------------------------


def made_scores(values: dict[str, dict[str, float]]) -> Scores:
    rows = [
        {"head": head, "measure": name, "value": value, "low": 0, "high": 1, "n": 3, "chance": 0}
        for head, mine in values.items()
        for name, value in mine.items()
    ]
    return Scores(pd.DataFrame(rows), pd.DataFrame(), {}, {})


def test_anomalies_are_pointed_out_and_come_first() -> None:
    usual = {"first-token": 0.3, "self": 0.1, "entropy": 0.6, "norm-gap": 0.1}
    heads = {f"L0H{i}": {k: v + 0.01 * i for k, v in usual.items()} for i in range(8)}
    heads["L0H3"] |= {"first-token": 0.95}
    heads["L0H5"] |= {"entropy": 0.995}
    heads["L0H6"] |= {"norm-gap": -2.5}
    scores = made_scores(heads)
    found = anomalies(scores, {"L0H1": ("L0H2", 0.001), "L0H2": ("L0H1", 0.2)})
    assert {(one.head, one.what) for one in found} == {
        ("L0H3", "null"), ("L0H5", "dead"), ("L0H6", "norms"), ("L0H1", "duplicate"),
    }  # fmt: skip
    assert set(worth_a_look(scores, found)["head"][:3]) == {"L0H3", "L0H5", "L0H6"}


def test_the_card_of_a_head_holds_what_is_known_of_it(gpt: aa.Atlas) -> None:
    made = card(gpt, gpt.measure(), "L3H2", alike(gpt))
    previous = next(one for one in made.scores if one["measure"] == "previous")
    assert previous["rank"] == 1 and previous["of"] == 36 and previous["formula"]
    assert made.kind["kind"] == "parallel"
    assert set(made.telling) <= {0, 1, 2} and len(made.nearest) == 5
    with pytest.raises(aa.PickError, match="L9H9"):
        card(gpt, gpt.measure(), "L9H9")


# Trees -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (TREE.replace("The cat saw dogs.", "Something else!"), "holds none of its words"),
        ("1\tword\n", "ten columns"),
        ("", "holds no sentence"),
        (TREE.replace("cat", "dog"), "no input of gpt.atlas is a sentence of a.conllu"),
    ],
)
def test_a_conllu_file_that_does_not_match_is_told(
    gpt: aa.Atlas, tmp_path: Path, content: str, told: str
) -> None:
    (tmp_path / "a.conllu").write_text(content)
    with pytest.raises(aa.InputError, match=told):
        gpt.measure(conllu=tmp_path / "a.conllu", progress=False)
