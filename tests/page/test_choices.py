"""What Python hands to a page is something that the page knows: rules are written once."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attention_atlas as aa
from attention_atlas.measure.kinds import KINDS
from attention_atlas.measure.measures import MEASURES
from attention_atlas.names.errors import PickError
from attention_atlas.names.token_text import is_punctuation
from attention_atlas.page.wire import constants
from attention_atlas.page.wire.picks import Picks, read_picks

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web" / "src"
VIEWS: dict[str, Callable[[Any], Any]] = {
    "head": aa.head_view,
    "model": aa.model_view,
    "neuron": aa.neuron_view,
    "matrix": aa.matrix_view,
    "map": aa.map_view,
    "heads": aa.heads_view,
}


@pytest.fixture(scope="module")
def own(gpt: aa.Atlas, tmp_path_factory: pytest.TempPathFactory) -> aa.Atlas:
    """An atlas that may be measured; the shared one must stay as it is."""
    return aa.open(shutil.copytree(gpt.path, tmp_path_factory.mktemp("own") / "gpt.atlas"))


def written(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", VIEWS)
def test_what_a_view_opens_with_is_among_the_choices_of_the_page(name: str, own: aa.Atlas) -> None:
    picks = VIEWS[name](own).picks
    assert picks.keys() == vars(Picks()).keys()
    assert read_picks(picks) == picks
    assert picks["colour"] in constants.COLOURS
    assert {picks["across"], picks["up"]} <= {*MEASURES, *constants.HEAD_NUMBERS}
    assert picks["score"] == "kind"


def test_the_menu_of_colours_is_made_of_the_names_that_python_uses() -> None:
    menu = re.findall(r'\{ name: "(\w+)", label: COLOURS\.(\w+) \}', written("map/colouring.ts"))
    assert menu == [(name, name) for name in constants.COLOURS]


def test_every_kind_has_a_colour() -> None:
    assert tuple(constants.KIND_COLOURS) == KINDS


def test_colours_of_kinds_are_written_nowhere_else() -> None:
    """Once in Python, once where TypeScript is generated."""
    known = {colour.lower() for colour in constants.KIND_COLOURS.values()}
    files = [*WEB.rglob("*.ts"), *WEB.rglob("*.svelte"), *(ROOT / "src").rglob("*.py")]
    found = {
        f"{file.relative_to(ROOT)}: {colour}"
        for file in files
        if file.name not in ("wire.ts", "kinds.py", "constants.py")
        for colour in known
        if colour.removeprefix("#") in file.read_text(encoding="utf-8").lower()
    }
    assert found == set()


@pytest.mark.parametrize(
    ("picks", "sentence"),
    [
        (
            {"view": "heads"},
            "'view' of picks should be 'head', 'model', 'neuron', 'heat', 'logit' or",
        ),
        ({"token": {"side": "kind", "position": 0}}, "'token.side' of picks should be"),
        ({"hidden": {"text": ["a"]}}, "'hidden.text.0' of picks should be a valid integer"),
        ({"threshold": float("nan")}, "picks cannot be read as JSON"),
        ({"layer": True}, "'layer' of picks should be a valid integer"),
    ],
)
def test_picks_that_no_page_sends_are_refused_in_a_sentence(
    gpt: aa.Atlas, picks: dict[str, Any], sentence: str
) -> None:
    view = aa.head_view(gpt)
    with pytest.raises(PickError, match=re.escape(sentence)):
        view.picks = picks
    assert view.picks == aa.head_view(gpt).picks


@pytest.mark.parametrize(
    ("text", "expected"),
    [(",", True), ("·…", True), ("--", True), ("€", True), ("·", False), ("⏎", False),
     ("a.", False), ("3.5", False), ("½", False), ("漢", False)],
)  # fmt: skip
def test_punctuation_takes_ink_and_is_neither_letter_nor_number(text: str, expected: bool) -> None:
    assert is_punctuation(text) is expected
