"""Tokens of all kinds of tokenizers read as text."""

import pytest
import transformers
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from attention_atlas.names.token_text import shown, visible, words


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (["The", "Ġcat", "Ċ", "ĠcafÃ©"], ["The", "·cat", "⏎", "·café"]),  # GPT-2
        (["▁The", "▁c", "at", "<0x0A>", "<0xF0>"], ["·The", "·c", "at", "⏎", "⟨F0⟩"]),  # Llama
        (["un", "##believ", "##able", "#", "##"], ["un", "believ", "able", "#", "##"]),  # BERT
        (["the</w>", "un", "real</w>"], ["the", "un", "real"]),  # CLIP, GPT
        (["hel@@", "lo", "@"], ["hel", "lo", "@"]),  # fairseq, CTRL
        (["a\tb", "\n\n", "", "x\u200by"], ["a⇥b", "⏎⏎", "∅", "x⟨U+200B⟩y"]),
        (["ĠðŁ", "ĺ", "Ģ"], ["·⟨F09F⟩", "⟨98⟩", "⟨80⟩"]),  # an emoji cut into pieces
        (["café", "naïve"], ["café", "naïve"]),  # letters that are not bytes stay
        (["ä½ł", "å¥½"], ["你", "好"]),  # bytes without any space mark
    ],
)
def test_marks_become_what_they_stand_for(raw: list[str], read: list[str]) -> None:
    assert shown(raw) == read


def test_special_tokens_keep_their_spelling() -> None:
    assert shown(["</s>", "Ġa", "<|endoftext|>"], [True, False, True]) == [
        "</s>",
        "·a",
        "<|endoftext|>",
    ]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_the_byte_pieces_of_any_text_read_as_that_text(text: str) -> None:
    """Against the byte-level pre-tokenizer of the tokenizers package, one piece for the text."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    piece = "".join(part for part, _ in level.pre_tokenize_str(text))
    assume(not piece.endswith(("</w>", "@@")))
    assert shown([piece]) == [visible(decoders.ByteLevel().decode([piece]))]


def test_a_real_byte_fallback_tokenizer_reads_well() -> None:
    pieces = {"<unk>": 0, "▁": 1, "▁a": 2, "a": 3, **{f"<0x{i:02X}>": 4 + i for i in range(256)}}
    inner = Tokenizer(models.BPE(pieces, [("▁", "a")], unk_token="<unk>", byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")
    raw = tokenizer.convert_ids_to_tokens(tokenizer("a é")["input_ids"])
    assert shown(raw) == ["·a", "·", "⟨C3⟩", "⟨A9⟩"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (["[CLS]", "un", "##real", "cat", "[SEP]"], [-1, 0, 0, 1, -1]),
        (["The", "Ġun", "real", "Ġcat"], [0, 1, 1, 2]),
        (["un", "real</w>", "cat</w>"], [0, 0, 1]),
        (["hel@@", "lo", "you"], [0, 0, 1]),
    ],
)
def test_words_follow_the_marks(raw: list[str], expected: list[int]) -> None:
    assert words(raw, [one.startswith("[") for one in raw]) == expected
