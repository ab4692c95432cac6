"""The queries of docs/queries.md, run as they stand, give what NumPy and pandas give."""

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_atlas as aa
from tests.planted import planted

PAGE = Path(__file__).parents[2] / "docs" / "queries.md"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the names of the page's code hold after it ran beside a measured x.atlas."""
    folder = tmp_path_factory.mktemp("queries")
    planted(folder / "x.atlas", 3).measure(progress=False)
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "queries"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec("\n".join(code), names)
    names["atlas"] = aa.open(folder / "x.atlas")
    return names


def test_the_page_has_three_queries() -> None:
    assert PAGE.read_text(encoding="utf-8").count("duckdb.sql(") == 3


def test_the_heads_furthest_above_chance(ran: dict[str, Any]) -> None:
    table = ran["atlas"].scores().table
    rows = table[np.isfinite(table["value"]) & np.isfinite(table["chance"])]
    best = ran["best"]
    assert set(best["measure"]) == set(rows["measure"]) and len(best) > 5
    for measure, head, above in best.itertuples(index=False):
        own = rows[rows["measure"] == measure]
        gaps = (own["value"] - own["chance"]).to_numpy()
        assert above == gaps.max()
        assert head in own["head"].to_numpy()[gaps == gaps.max()]
    assert best["above"].is_monotonic_decreasing


def test_the_words_that_a_head_looks_at(ran: dict[str, Any]) -> None:
    atlas, inputs = ran["atlas"], Counter[str]()
    totals: dict[str, float] = defaultdict(float)
    for number in range(len(atlas)):
        words, weights = atlas.tokens(number)["text"].tolist(), atlas.weights(number, "L0H3")
        seen = set()
        for query in range(len(words)):
            for key, word in enumerate(words):
                if weights[query, key] > 0.01 and word != "<s>":
                    totals[word] += float(weights[query, key])
                    seen.add(word)
        inputs.update(seen)
    looked_at = ran["looked_at"]
    ten = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:10]
    assert looked_at["text"].tolist() == [word for word, _ in ten]
    assert looked_at["weight"].tolist() == pytest.approx([weight for _, weight in ten])
    assert looked_at["inputs"].tolist() == [inputs[word] for word, _ in ten]


def test_the_kinds_of_each_layer(ran: dict[str, Any]) -> None:
    heads = ran["atlas"].heads()
    counted = Counter(zip(heads["layer"], heads["kind"], strict=True))
    told = {(row.layer, row.kind): row.heads for row in ran["kinds"].itertuples(index=False)}
    assert told == dict(counted) == {key: int(count) for key, count in ran["same"].items()}
    assert ran["scores"].num_rows == len(ran["atlas"].scores().table)
