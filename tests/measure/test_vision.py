"""The paper's scenarios on a model with planted weights: each head is found for what it is."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import attention_atlas as aa
from attention_atlas.images.probes import write_probes
from attention_atlas.measure.arrows import ARROW, CIRCLE, SQUARE
from attention_atlas.page.live.answers import Answers
from tests.planted_vit import SIDE, planted_vit
from tests.record.test_placeholders import llava
from tests.tolerance import STORED

CELLS = list(product(range(SIDE), range(SIDE)))


@pytest.fixture(scope="module")
def atlases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, aa.Atlas]:
    """Kind of probe → what the planted model did on it."""
    folder = tmp_path_factory.mktemp("probes")
    model, processor = planted_vit()
    made = {}
    for kind in ("hue", "brightness", "gratings"):
        write_probes(kind, folder / kind, 112)
        made[kind] = aa.capture(
            model, folder / kind, tokenizer=processor, path=folder / f"{kind}.atlas",
            progress=False,
        )  # fmt: skip
        made[kind].measure(progress=False)
    return made


@pytest.fixture(scope="module")
def grey() -> aa.Atlas:
    model, processor = planted_vit()
    picture = Image.new("RGB", (112, 112), (128, 128, 128))
    atlas = aa.capture(model, [picture, picture], tokenizer=processor, progress=False)
    atlas.measure(progress=False)
    return atlas


def ranking(atlas: aa.Atlas, score: str) -> "list[tuple[str, float]]":
    frame = atlas.heads().sort_values(score, ascending=False)
    return list(zip(frame["head"], frame[score], strict=True))


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "score", "head", "least"),
    [
        ("brightness", "orders-brightness", "L0H0", 0.95),
        ("hue", "orders-hue", "L0H1", 0.95),
        ("gratings", "orders-angle", "L1H0", 0.95),
        # a patch holds a third of the longest wave, so the two longest are hard to tell apart
        ("gratings", "orders-frequency", "L1H1", 0.7),
    ],
)
def test_a_head_is_found_by_what_its_map_is_ordered_by(
    atlases: dict[str, aa.Atlas], kind: str, score: str, head: str, least: float
) -> None:
    (first, best), (_, second) = ranking(atlases[kind], score)[:2]
    assert first == head and best > least and second < best - 0.4
    table = atlases[kind].measure().table
    row = table[(table["head"] == head) & (table["measure"] == score)].iloc[0]
    assert row["chance"] < best - 0.2


def test_heads_that_know_places_do_not_order_by_what_is_shuffled(
    atlases: dict[str, aa.Atlas],
) -> None:
    heads = atlases["brightness"].heads().set_index("head")["orders-brightness"]
    assert heads[["L0H2", "L0H3", "L1H2"]].max() < 0.4


def test_heads_that_look_left_along_rows_or_at_themselves_are_found(grey: aa.Atlas) -> None:
    assert ranking(grey, "patch-left")[0][0] == "L0H2"
    heads = grey.heads().set_index("head")
    assert heads.loc["L0H2", "patch-left"] == pytest.approx(1, abs=STORED)
    # along the row: each of the seven alike, so six sevenths go to the others
    assert heads.loc["L0H3", "patch-row"] == pytest.approx(6 / 7, abs=STORED)
    assert heads.loc["L0H3", "patch-self"] == pytest.approx(1 / 7, abs=STORED)
    assert heads.loc["L0H3", "patch-left"] == pytest.approx(1 / 7, abs=STORED)
    assert heads.loc["L0H3", "patch-column"] == pytest.approx(0, abs=STORED)
    assert heads.loc["L1H2", "patch-self"] == pytest.approx(1, abs=STORED)
    assert heads.loc["L1H3", "patch-class"] == pytest.approx(1, abs=STORED)


def test_the_head_that_looks_at_itself_has_queries_and_keys_of_the_same_weights(
    grey: aa.Atlas,
) -> None:
    heads = grey.heads().set_index("head")["weight-correlation"]
    assert heads["L1H2"] == pytest.approx(1, abs=1e-5)
    assert heads["L1H3"] < 0.1 and heads["L0H2"] < 0.7


def test_attention_distance_by_layer_is_what_we_can_work_out_by_hand(grey: aa.Atlas) -> None:
    # evenly over the picture: the mean distance of two of its cells; brightness and hue see no more
    even = sum(math.dist(a, b) for a in CELLS for b in CELLS) / len(CELLS) ** 2
    # of seven in a row, from an end 0 … 6 are 21 steps, then 16, 13, 12 in the middle, and back
    row = (21 + 16 + 13 + 12 + 13 + 16 + 21) / 49
    heads = grey.heads().set_index("head")["patch-distance"]
    assert heads["L0H0"] == pytest.approx(even, abs=STORED)
    assert heads["L0H3"] == pytest.approx(row, abs=STORED)
    assert heads["L1H2"] == pytest.approx(0, abs=STORED)
    # looking left is one step; the first column looks at no patch, so it has no say
    assert heads["L0H2"] == pytest.approx(1, abs=STORED)
    by_layer = grey.heads().groupby("layer")["patch-distance"].mean()
    assert by_layer[0] == pytest.approx((2 * even + 1 + row) / 4, abs=STORED)


def marks(atlas: aa.Atlas, layer: int, head: int) -> "dict[int, int]":
    gaze = Answers(atlas).answer(f"gaze/0/encoder/{layer}/{head}")
    kinds, counts = np.unique(gaze.mark, return_counts=True)
    return dict(zip(kinds.tolist(), counts.tolist(), strict=True))


def test_arrows_circles_and_squares_are_as_many_as_planted(grey: aa.Atlas) -> None:
    # looking left: 42 patches have one there, the 7 of the first column look at the class token;
    # the class token itself is no patch and has no mark
    assert marks(grey, 0, 2) == {0: 1, ARROW: 42, SQUARE: 7}
    assert marks(grey, 1, 2) == {0: 1, CIRCLE: 49}
    assert marks(grey, 1, 3) == {0: 1, SQUARE: 49}
    # evenly over 50 tokens is 0.02 each: too faint to be drawn
    assert marks(grey, 0, 0) == {0: 50}
    gaze = Answers(grey).answer("gaze/0/encoder/0/2")
    patches = [1 + r * SIDE + c for r, c in CELLS if c > 0]
    assert [int(gaze.strongest[place]) for place in patches] == [place - 1 for place in patches]


def test_chance_for_the_ranking_is_told(atlases: dict[str, aa.Atlas], tmp_path: Path) -> None:
    measures = atlases["hue"].measure().measures
    assert "circular rank correlation" in measures["orders-hue"]["formula"]
    assert measures["orders-hue"]["chance"] == "the values shuffled among the inputs"


def test_how_much_words_look_at_a_picture_is_their_weight_on_its_tokens() -> None:
    model, processor = llava()
    asked = {"text": "what is this", "image": Image.new("RGB", (64, 64), (90, 20, 200))}
    atlas = aa.capture(model, [asked], tokenizer=processor, progress=False)
    atlas.measure(progress=False)
    heads: Any = atlas.heads().set_index("head")
    weights = atlas.weights(0, "text.L1H1")  # 16 tokens of the picture, then three words
    expected = weights[16:, :16].sum(1).mean()
    assert heads.loc["text.L1H1", "text-to-image"] == pytest.approx(expected, abs=1e-4)
    # the picture comes first in a causal model, so it sees no word: there is no answer
    assert "image-to-text" not in heads or heads["image-to-text"].isna().all()
    assert np.isnan(heads.loc["vision.L0H0", "text-to-image"])
    assert heads.loc["vision.L0H0", "patch-distance"] > 0
