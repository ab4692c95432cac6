"""Trees: agreement in all and by relation, against loops written apart from it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_atlas as aa
from attention_atlas.measure import boot
from attention_atlas.measure.conllu import read_conllu
from attention_atlas.measure.relations import best_heads, ratio
from attention_atlas.measure.report import write_report
from attention_atlas.measure.trees import OFFSETS, Matched, by_words, choose, right
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.packing import unpack
from tests.test_bad_input import Captured, run

CAT = """# text = The cat saw dogs.
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tsaw\tsee\tVERB\t_\t_\t0\troot\t_\t_
4\tdogs\tdog\tNOUN\t_\t_\t3\tobj\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_
"""
FARMER = """# text = The farmer offered the traveller his horse.
1\tThe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tfarmer\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\toffered\t_\tVERB\t_\t_\t0\troot\t_\t_
4\tthe\t_\tDET\t_\t_\t5\tdet\t_\t_
5\ttraveller\t_\tNOUN\t_\t_\t3\tiobj\t_\t_
6\this\t_\tPRON\t_\t_\t7\tnmod:poss\t_\t_
7\thorse\t_\tNOUN\t_\t_\t3\tobj\t_\tSpaceAfter=No
8\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_
"""
RAIN = """# text = Rain fell and the old man slept.
1\tRain\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tfell\t_\tVERB\t_\t_\t0\troot\t_\t_
3\tand\t_\tCCONJ\t_\t_\t7\tcc\t_\t_
4\tthe\t_\tDET\t_\t_\t6\tdet\t_\t_
5\told\t_\tADJ\t_\t_\t6\tamod\t_\t_
6\tman\t_\tNOUN\t_\t_\t7\tnsubj\t_\t_
7\tslept\t_\tVERB\t_\t_\t2\tconj\t_\tSpaceAfter=No
8\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_
"""
TREES = {"cat": CAT, "farmer": FARMER, "rain": RAIN}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trees") / "three.conllu"
    path.write_text("\n".join(TREES.values()), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=["builtin:gpt", "builtin:bert"])
def atlas(request: pytest.FixtureRequest, file: Path) -> aa.Atlas:
    texts: list[Any] = [sentence.text for sentence in read_conllu(file)]
    path = file.parent / f"{request.param[8:]}.atlas"
    made = aa.capture(request.param, texts, path=path, progress=False)
    made.measure(conllu=file, progress=False)
    return made


# In loops, from the words of the two modules ------------------------------------------------------


def words_of(text: str, tokens: pd.DataFrame, tree: str) -> tuple[list[list[int]], list[Any]]:
    """Tokens of each word, and (word, governor, relation) from the lines of the tree."""
    rows = [line.split("\t") for line in tree.splitlines() if line and line[0] != "#"]
    places, reached = [], 0
    for row in rows:
        start = text.index(row[1], reached)
        reached = start + len(row[1])
        places.append(
            [
                i
                for i, (s, e) in enumerate(zip(tokens["start"], tokens["end"], strict=True))
                if s >= 0 and s < reached and e > start
            ]
        )
    return places, [(int(row[0]) - 1, int(row[6]) - 1, row[7].split(":")[0]) for row in rows]


def best_word(weights: Any, places: list[list[int]], word: int, seen: Any) -> int | None:
    totals: dict[int, float] = {}
    for other in range(len(places)):
        if other != word and any(seen[i][j] for i in places[word] for j in places[other]):
            total = sum(float(weights[i][j]) for i in places[word] for j in places[other])
            totals[other] = total / len(places[word])
    return max(totals, key=lambda one: totals[one]) if totals else None


def plain_relation(
    atlas: aa.Atlas, head: str, relation: str, way: str
) -> tuple[int, int, dict[int, int]]:
    """Words that are right, words that could be, and what each offset gets right."""
    fine = could = 0
    by_offset = dict.fromkeys(OFFSETS, 0)
    for number, tree in enumerate(TREES.values()):
        text = str(atlas.inputs()["text"][number])
        places, arcs = words_of(text, atlas.tokens(number), tree)
        pairs = [(w, g) for w, g, r in arcs if g >= 0 and r != "punct" and relation in ("*", r)]
        pairs = {"up": pairs, "down": [(g, w) for w, g in pairs]}.get(
            way, pairs + [(g, w) for w, g in pairs]
        )
        seen = atlas.terms(head, number).seen
        weights = atlas.weights(number, head)
        for word in range(len(places)):
            targets = [
                t
                for w, t in pairs
                if w == word and any(seen[i][j] for i in places[word] for j in places[t])
            ]
            if not targets:
                continue
            could += 1
            fine += best_word(weights, places, word, seen) in targets
            for offset in OFFSETS:
                by_offset[offset] += word + offset in targets
    return fine, could, by_offset


@pytest.mark.full
def test_every_relation_of_every_head_is_what_loops_find(atlas: aa.Atlas) -> None:
    table: Any = atlas.relations()
    assert {"det", "nsubj", "obj", "iobj", "nmod", "amod", "cc", "conj"} >= set(table["relation"])
    assert "punct" not in set(table["relation"])
    heads = ("L0H0", "L2H3", "L3H2", "L5H5")
    for row in table[table["head"].isin(heads)].itertuples():
        fine, could, offsets = plain_relation(atlas, row.head, row.relation, row.way)
        assert (row.words, row.right) == (could, pytest.approx(fine / could)), row
        assert row.baseline == pytest.approx(max(offsets.values()) / could)
        assert offsets[row.offset] == max(offsets.values())
        assert row.above == pytest.approx(row.right - row.baseline)
        assert np.isnan(row.low) or 0 <= row.low <= row.right <= row.high <= 1


def test_a_causal_head_is_asked_only_about_what_it_sees(atlas: aa.Atlas) -> None:
    table: Any = atlas.relations()
    down = table[(table["relation"] == "det") & (table["way"] == "down")].iloc[0]
    up = table[(table["relation"] == "det") & (table["way"] == "up")]
    assert down["words"] == 4  # cat, farmer, traveller, man come after their articles
    assert len(up) == (0 if atlas.towers[0].role == "causal" else 36)


def test_syntax_in_all_is_the_mean_over_inputs_less_the_best_offset_of_the_same_words(
    atlas: aa.Atlas,
) -> None:
    shares, fixed = [], []
    for number, tree in enumerate(TREES.values()):
        text = str(atlas.inputs()["text"][number])
        places, arcs = words_of(text, atlas.tokens(number), tree)
        linked = {(w, g) for w, g, r in arcs if g >= 0 and r != "punct"}
        linked |= {(g, w) for w, g in linked}
        seen, weights = atlas.terms("L2H3", number).seen, atlas.weights(number, "L2H3")
        fine, offsets, could = 0, dict.fromkeys(OFFSETS, 0), 0
        for word in range(len(places)):
            targets = {
                t
                for w, t in linked
                if w == word and any(seen[i][j] for i in places[word] for j in places[t])
            }
            if targets:
                could += 1
                fine += best_word(weights, places, word, seen) in targets
                for offset in OFFSETS:
                    offsets[offset] += word + offset in targets
        shares.append(fine / could)
        fixed.append([offsets[one] / could for one in OFFSETS])
    expected = np.mean(shares) - np.mean(fixed, 0).max()
    heads: Any = atlas.heads().set_index("head")
    assert heads.loc["L2H3", "syntax"] == pytest.approx(expected)


# By hand ------------------------------------------------------------------------------------------


def test_a_tree_is_read_with_its_places_and_links(file: Path) -> None:
    sentence = read_conllu(file)[0]
    assert [(w.start, w.end) for w in sentence.words][2:] == [(8, 11), (12, 16), (16, 17)]
    tokens = pd.DataFrame({"start": [-1, 0, 4, 6, 8, 12, 16], "end": [-1, 3, 6, 7, 11, 16, 17]})
    one = Matched(sentence, tokens)  # "cat" is two tokens
    assert [word.tolist() for word in one.words] == [[1], [2, 3], [4], [5], [6]]
    links = {(a, b) for a, b in zip(*np.nonzero(one.linked), strict=True) if a < b}
    assert links == {(0, 1), (1, 2), (2, 3)}
    assert np.argwhere(one.depends["nsubj"]).tolist() == [[1, 2]]
    weights = np.zeros((1, 7, 7))
    weights[0, 2, 4], weights[0, 3, 5] = 1, 1
    assert by_words(weights, one.words, one.words)[0, 1].tolist() == [0, 0, 0.5, 0.5, 0]


@settings(max_examples=40)
@given(n=st.integers(2, 10), causal=st.booleans(), offset=st.sampled_from(OFFSETS))
def test_a_head_of_a_fixed_offset_chooses_as_the_offset_does(
    n: int, causal: bool, offset: int
) -> None:
    seen = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    weights = np.zeros((1, n, n))
    for row in range(n):
        there = 0 <= row + offset < n and seen[row, row + offset]
        weights[0, row, row + offset if there else row] = 1
    words = [np.array([place]) for place in range(n)]
    chosen, fixed, other = choose(weights, seen, words, words)
    assert chosen[0].tolist() == fixed[OFFSETS.index(offset)].tolist()
    links = np.random.default_rng(n).random((n, n)) < 0.3
    assert right(chosen, links, other)[0][0] == right(fixed, links, other)[0][OFFSETS.index(offset)]


def test_intervals_of_a_share_cover_the_truth_as_often_as_they_say() -> None:
    dice = np.random.default_rng(2)
    inputs, trials, truth = 25, 800, 0.3
    total = dice.integers(1, 6, inputs).astype(float)
    count = np.stack([dice.binomial(total.astype(int), truth) for _ in range(trials)], 1)
    _, low, high = ratio(count.astype(float), total, boot.draws(0, tuple(range(inputs))))
    assert 0.92 <= np.mean((low <= truth) & (truth <= high)) <= 0.98


def test_the_best_head_of_each_relation_comes_once(atlas: aa.Atlas) -> None:
    table: Any = atlas.relations()
    best = best_heads(table)
    assert not best.duplicated(["relation", "way"]).any()
    for row in best.to_dict("records"):
        mine = table[(table["relation"] == row["relation"]) & (table["way"] == row["way"])]
        assert row["above"] == mine["above"].max()
    assert best["above"].is_monotonic_decreasing


@pytest.mark.full
def test_measuring_anew_without_trees_forgets_them(atlas: aa.Atlas, file: Path) -> None:
    atlas.measure(again=True, progress=False)
    assert atlas.relations() is None and "syntax" not in atlas.heads().columns
    atlas.measure(conllu=file, progress=False)
    assert atlas.relations() is not None


@pytest.mark.full
def test_relations_are_listed_on_the_command_line(atlas: aa.Atlas, capsys: Captured) -> None:
    assert run("heads", str(atlas.path), "--relations", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(atlas.relations())  # type: ignore[arg-type]
    assert run("heads", str(atlas.path), "--relations") == 0
    assert "nsubj" in capsys.readouterr().out
    table: Any = atlas.relations()
    best: Any = best_heads(table).iloc[0]
    assert run("heads", str(atlas.path), "--head", str(best["head"])) == 0
    first = json.loads(capsys.readouterr().out)["relations"][0]
    assert first["above"] == pytest.approx(best["above"]) and first["above"] > 0


@pytest.mark.full
def test_without_trees_the_command_line_says_how_to_give_them(
    tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "x.atlas"
    aa.capture("builtin:gpt", "Rain fell.", path=path, progress=False)
    assert run("heads", str(path), "--relations") == 2
    assert "attention-atlas measure x.atlas --conllu FILE" in capsys.readouterr().err


@pytest.mark.full
def test_the_report_and_the_card_tell_of_relations(atlas: aa.Atlas, tmp_path: Path) -> None:
    table: Any = atlas.relations()
    best: Any = best_heads(table).iloc[0]
    write_report(atlas, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"<td>{best['relation']}</td><td>{best['way']}</td><td>{best['head']}</td>" in page
    told = unpack(Answers(atlas).packet(f"card/{best['head']}")[0])["relations"][0]
    assert told["right"] - told["baseline"] == pytest.approx(best["above"])
