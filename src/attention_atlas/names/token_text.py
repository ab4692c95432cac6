"""How is a token shown so that a person can read it?

Tokenizers write marks into their pieces: Ġ and ▁ for a space, ## and @@ for the middle of a word,
</w> for its end, Ċ or <0x0A> for a new line, Ã© for the two bytes of é. Shown are the letters
themselves; a space before them is a thin mark, and bytes that are no whole letter are named.
What the tokenizer itself wrote stays beside it, so two tokens that look alike can be told apart.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby

SPACE, LINE, TAB, NOTHING = "·", "⏎", "⇥", "∅"
MARKS = SPACE + LINE + TAB  # what stands for blank places

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_VISIBLE = {" ": SPACE, "\n": LINE, "\t": TAB, "\r": "␍", "\u00a0": SPACE, "▁": SPACE}
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, format, surrogate, separators


def shown(raw: Sequence[str], special: Sequence[bool] | None = None) -> list[str]:
    """Each token of one stream as a person reads it; special tokens keep their spelling."""
    known = [False] * len(raw) if special is None else list(special)
    byte_level = _is_byte_level([one for one, flag in zip(raw, known, strict=True) if not flag])
    return [
        visible(one) if flag else visible(_letters(one, byte_level))
        for one, flag in zip(raw, known, strict=True)
    ]


def shown_by_stream(
    streams: Sequence[str], raw: Sequence[str], special: Sequence[bool]
) -> list[str]:
    """Return each token as a person reads it; how a stream writes its marks is told from all of it.

    Equal tokens of a stream are read once.
    """
    known: dict[str, dict[tuple[str, bool], str]] = {}
    for stream, text, flag in zip(streams, raw, special, strict=True):
        known.setdefault(stream, {})[text, flag] = text
    for pairs in known.values():
        texts = shown([text for text, _ in pairs], [flag for _, flag in pairs])
        pairs.update(zip(pairs, texts, strict=True))
    return [
        known[stream][text, flag] for stream, text, flag in zip(streams, raw, special, strict=True)
    ]


def token_kind(text: str) -> str:
    """Return letters, number, punctuation or space, of a token as it is shown.

    The one rule of what punctuation is: something takes ink, and none of it is a letter or number.
    """
    bare = text.strip(MARKS)
    if not bare:
        return "space"
    groups = {unicodedata.category(letter)[0] for letter in bare}
    return "letters" if "L" in groups else "number" if "N" in groups else "punctuation"


def is_punctuation(text: str) -> bool:
    """Return whether a token, as it is shown, is punctuation."""
    return token_kind(text) == "punctuation"


def words(raw: Sequence[str], special: Sequence[bool]) -> list[int]:
    """Which word each token belongs to, as far as the marks tell; -1 for special tokens."""
    begins = _beginnings(raw, special)
    found, count, fresh = [], -1, True
    for starts, flag in zip(begins, special, strict=True):
        if flag:
            found.append(-1)
            fresh = True
            continue
        count += starts or fresh
        found.append(count)
        fresh = False
    return found


def _beginnings(raw: Sequence[str], special: Sequence[bool]) -> list[bool]:
    """Whether a new word starts at each token, by the marks that this stream uses."""
    plain = [one for one, flag in zip(raw, special, strict=True) if not flag]
    if any(one[:1] in ("Ġ", "▁", "Ċ") for one in plain):
        return [one[:1] in ("Ġ", "▁", "Ċ") for one in raw]
    for ending, inside in (("</w>", False), ("@@", True)):
        if any(one.endswith(ending) and one != ending for one in plain):
            before = [one.endswith(ending) != inside for one in raw]
            return [True, *before[:-1]]
    return [not one.startswith("##") for one in raw]


def visible(text: str) -> str:
    """Nothing is left that takes no ink: spaces, line ends and control characters get a mark."""
    marked = "".join(_mark(letter) for letter in text)
    return marked or NOTHING


def _mark(letter: str) -> str:
    if letter in _VISIBLE:
        return _VISIBLE[letter]
    if unicodedata.category(letter) in _INVISIBLE:
        return f"⟨U+{ord(letter):04X}⟩"
    return SPACE if letter.isspace() else letter


def _letters(raw: str, byte_level: bool) -> str:
    piece = _BYTE_PIECE.fullmatch(raw)
    if piece:
        return _decoded(bytes([int(piece[1], 16)]))
    if len(raw) > 4 and raw.endswith("</w>"):
        raw = raw.removesuffix("</w>")
    elif len(raw) > 2 and raw.startswith("##"):
        raw = raw.removeprefix("##")
    elif len(raw) > 2 and raw.endswith("@@"):
        raw = raw.removesuffix("@@")
    if byte_level and all(letter in _BYTES for letter in raw):
        return _decoded(bytes(_BYTES[letter] for letter in raw))
    return raw


def _decoded(piece: bytes) -> str:
    """Whole letters as letters, the bytes of a cut letter by their numbers."""
    text = piece.decode("utf-8", errors="surrogateescape")
    return "".join(
        f"⟨{''.join(f'{ord(one) - 0xDC00:02X}' for one in run)}⟩" if cut else "".join(run)
        for cut, run in groupby(text, _is_byte)
    )


def _is_byte(letter: str) -> bool:
    return 0xDC80 <= ord(letter) <= 0xDCFF


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's letters for bytes: those with ink stand for themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    return alphabet | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_alphabet()


def _is_byte_level(raw: Sequence[str]) -> bool:
    """Whether the letters stand for bytes.

    A space mark says so. Without one, they do if some are beyond ASCII and all such pieces
    decode: "Ã©" would be a strange thing to write otherwise.
    """
    if any("▁" in one for one in raw):
        return False
    if any(letter in one for one in raw for letter in "ĠĊĉč"):
        return True
    beyond = [one.removesuffix("</w>") for one in raw if not one.isascii()]
    return bool(beyond) and all(_decodes(one) for one in beyond)


def _decodes(raw: str) -> bool:
    if not all(letter in _BYTES for letter in raw):
        return False
    try:
        bytes(_BYTES[letter] for letter in raw).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
