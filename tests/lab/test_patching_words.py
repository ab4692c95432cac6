"""Patching of texts with builtin:gpt: alignment, the copying head, and what is refused."""

from typing import Any

import pytest

import attention_atlas as aa
from attention_atlas.lab.patching.align import common
from attention_atlas.models.load import Loaded, load

CLEAN = "He saw the lady near the church and he saw the lady. He saw the"
CORRUPT = CLEAN.replace("lady", "horse")
PAIR = {"clean": CLEAN, "corrupt": CORRUPT, "answer": " lady", "wrong": " horse"}


@pytest.fixture(scope="module")
def gpt() -> Loaded:
    return load("builtin:gpt", device="cpu")


def test_late_heads_bring_the_word_that_is_copied_to_the_last_token(gpt: Loaded) -> None:
    table = aa.patching(gpt, PAIR, direction="denoise").table
    best = table.sort_values("recovered", ascending=False)["head"].tolist()[:3]
    assert "L4H5" in best and {name[:2] for name in best} <= {"L4", "L5"}
    where = aa.patching(gpt, PAIR, direction="denoise", heads="L4H5", positions="each").table
    assert where.set_index("position")["recovered"].idxmax() == where["position"].max()


def test_equal_tokens_and_replaced_stretches_of_equal_length_correspond() -> None:
    assert common([1, 2, 3, 4], [1, 9, 3, 4]) == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert common([1, 2, 3, 4], [1, 8, 9, 3, 4]) == ((0, 0), (2, 3), (3, 4))


def test_inputs_of_different_length_are_aligned_by_their_common_words(gpt: Loaded) -> None:
    """What is found by us is what is found when the same pairs are given."""
    longer = CORRUPT.replace("near", "again near")
    found = aa.patching(gpt, {**PAIR, "corrupt": longer}, heads="L4").table
    ids = [gpt.tokenizer(text)["input_ids"] for text in (CLEAN, longer)]
    assert len(ids[0]) != len(ids[1])
    pairs = common(*ids)
    given = aa.patching(gpt, {**PAIR, "corrupt": longer, "align": list(pairs)}, heads="L4").table
    assert found["recovered"].tolist() == given["recovered"].tolist()


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "lengths": (
        {"corrupt": "Why not?"},
        {},
        "the clean input has 17 tokens and the corrupt one 4, and 1 of them correspond; say which",
    ),
    "answer": (
        {"answer": " unbelievably"},
        {},
        "the answer ' unbelievably' is not one token of builtin:gpt but",
    ),
    "wrong": ({"wrong": None}, {}, "needs two answers and was given one"),
    "head": ({}, {"heads": "L9H0"}, "there is no head L9H0; decoder has layers 0 to 5"),
    "metric": (
        {},
        {"metric": "surprise"},
        "no metric is called 'surprise'; give one of",
    ),
    "same": ({"corrupt": CLEAN}, {}, "give the same difference"),
    "align": ({"align": [(0, 99)]}, {}, r"align has the pair \(0, 99\) and the clean input has 17"),
    "what": ({}, {"what": "soul"}, "a patch of 'soul' was asked for; give one of pattern"),
    "direction": ({}, {"direction": "up"}, "no direction is called 'up'"),
    "pair": ({"clear": "x"}, {}, "is no pair of inputs; give a dict with clean"),
    "path": (
        {},
        {"through": "L4H5", "what": "pattern"},
        "a path enters a head by its query",
    ),
    "receiver": ({}, {"through": "L4H9"}, "there is no head L4H9"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_said_in_one_sentence(gpt: Loaded, name: str) -> None:
    changes, options, sentence = REFUSED[name]
    with pytest.raises(aa.AtlasError, match=sentence) as told:
        aa.patching(gpt, {**PAIR, **changes}, **options)
    assert "\n" not in str(told.value)


def test_a_model_that_fills_in_masks_is_asked_at_its_mask() -> None:
    bert = load("builtin:bert", device="cpu")
    mask = bert.tokenizer.mask_token
    texts = {
        "clean": f"The king loved the queen and {mask} was happy.",
        "corrupt": f"The king loved the horse and {mask} was happy.",
    }
    study = aa.patching(bert, {**texts, "answer": "she", "wrong": "it"}, heads="L2")
    assert study.table["recovered"].notna().all()
    with pytest.raises(aa.InputError, match="fills in masks and the input has none"):
        aa.patching(bert, {"clean": "The king", "corrupt": "The queen", "answer": "she"})
