"""German, Chinese, Arabic, Hebrew, marks and emoji in every view: as they are, each apart."""

import unicodedata
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from tokenizers import pre_tokenizers

import attention_atlas as aa
from attention_atlas.names.token_text import shown
from attention_atlas.page.hosts.launch import start
from tests.web.axe import violations
from tests.web.conftest import PATIENCE
from tests.web.maps import picks

CODER = "\U0001f469\u200d\U0001f4bb"
# Words of a byte-level tokenizer, and two that it cuts within a letter.
WORDS = ["Straße", " 你", "好", " مرحبا", " שלום", " e\u0301te\u0301", f" {CODER}", "界", "🎉"]
CUT = {7: 1, 8: 2}  # 界 after its first byte, 🎉 after its second


def _pieces() -> list[str]:
    """The pieces as a byte-level tokenizer writes them."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pieces = []
    for at, word in enumerate(WORDS):
        ((letters, _),) = level.pre_tokenize_str(word)
        pieces += [letters] if at not in CUT else [letters[: CUT[at]], letters[CUT[at] :]]
    return pieces


READ = ["Straße", "·你", "好", "·مرحبا", "·שלום", "·e\u0301te\u0301", f"·{CODER}",
        "⟨E7⟩", "⟨958C⟩", "⟨F09F⟩", "⟨8E89⟩"]  # fmt: skip


@pytest.fixture(scope="module")
def served(built: None) -> Iterator[str]:
    n = len(READ)
    rng = np.random.default_rng(0)
    weights = [rng.dirichlet(np.ones(n), (1, 2, n)).astype(np.float32) for _ in range(2)]
    with start([aa.head_view(weights, _pieces()).subject], port=0) as running:
        yield running.url


@pytest.fixture
def visit(page: Page, served: str) -> Callable[[str], Page]:
    def go(hash: str) -> Page:
        page.goto("about:blank")
        page.goto(f"{served}#{hash}")
        page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
        return page

    return go


def test_a_byte_level_tokenizer_reads_as_letters_and_its_cuts_as_bytes() -> None:
    assert shown(_pieces()) == READ
    assert "界".encode().hex().upper() == "E7958C" and "🎉".encode().hex().upper() == "F09F8E89"


def test_no_space_mark_is_needed_to_see_that_letters_are_bytes() -> None:
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ((letters, _),) = level.pre_tokenize_str("你好世界")
    assert shown([letters[:3], letters[3:5], letters[5:]]) == ["你", "⟨E5A5⟩", "⟨BD⟩世界"]
    # Letters that could be bytes, one by one, but are a French text.
    assert shown(["«", "café", "»"]) == ["«", "café", "»"]


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (["\u0301"], ["◌\u0301"]),  # a mark without its letter
        (["e\u0301"], ["e\u0301"]),
        ([CODER], [CODER]),
        (["\u200d"], ["⟨U+200D⟩"]),  # nothing to join
        (["می\u200cخواهم"], ["می\u200cخواهم"]),  # Persian
        (["\u202eevil"], ["⟨U+202E⟩evil"]),  # turns the direction of what follows
    ],
)
def test_marks_and_joiners_are_kept_where_they_belong(raw: list[str], read: list[str]) -> None:
    assert shown(raw) == read
    assert all(unicodedata.is_normalized("NFC", text) or "\u0301" in text for text in read)


def _texts(page: Page, side: str) -> list[str]:
    return page.locator(f"[data-testid^={side}-0-] .aa-text").all_text_contents()


def test_lines_show_every_script_apart_from_what_is_beside_it(
    visit: Callable[[str], Page],
) -> None:
    page = visit("tab=text&view=head")
    assert _texts(page, "query") == READ and _texts(page, "key") == READ
    arabic = page.get_by_test_id("query-0-3").locator(".aa-text")
    assert arabic.evaluate("one => getComputedStyle(one).unicodeBidi") in ("isolate", "plaintext")
    # The mark of the space is before the word: at its right end, since it runs leftwards.
    side = """one => { const range = document.createRange(), text = one.firstChild;
      range.setStart(text, 0); range.setEnd(text, 1);
      const mark = range.getBoundingClientRect(); const all = one.getBoundingClientRect();
      return (mark.left + mark.right) / 2 > (all.left + all.right) / 2 }"""
    assert arabic.evaluate(side)
    assert not page.get_by_test_id("query-0-1").locator(".aa-text").evaluate(side)
    page.get_by_test_id("query-0-4").click()
    expect(page.get_by_test_id("status")).to_contain_text("“\u2068·שלום\u2069”")


@pytest.mark.full
def test_every_view_and_figure_shows_the_scripts(visit: Callable[[str], Page]) -> None:
    for view in ("head", "model", "heat", "read"):
        page = visit(
            f"tab=text&view={view}&heads=L0H0&token={{'side':'query','position':3}}&pinned=true"
        )
        assert violations(page) == []
        figure: str = page.evaluate("window.attentionAtlas.svg()")
        if view == "model":
            continue
        texts = ElementTree.fromstring(figure).iter("{http://www.w3.org/2000/svg}text")
        words = ["".join(text.itertext()) for text in texts]
        plain = [word.strip("\u2068\u2069").lstrip("·") for word in words]
        for text in READ:
            assert text.lstrip("·") in plain, (view, text)
        leftwards = [word for word in words if "שלום" in word]
        assert leftwards and all(word[0] == "\u2068" and word[-1] == "\u2069" for word in leftwards)
    assert picks(page)["view"] == "read"
