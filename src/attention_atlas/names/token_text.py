"""How is a token shown so that a person can read it?

Tokenizers write marks into their pieces: Ġ and ▁ for a space, ## and @@ for the middle of a word,
</w> for its end, Ċ or <0x0A> for a new line, Ã© for the two bytes of é. We show the letters
themselves; a space before them becomes a thin mark, and the bytes of a cut letter become numbers.
A mark without its letter stands on a dotted circle; what joins emoji or letters stays between them.
The raw token is kept too, so that two tokens that look alike can be distinguished.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby

SPACE, LINE, TAB, NOTHING, CIRCLE = "·", "⏎", "⇥", "∅", "◌"
MARKS = SPACE + LINE + TAB  # shown in place of blanks

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# Without a tokenizer only the spelling shows it: [CLS], <s>, </s>, <|endoftext|>, <extra_id_0>.
_SPECIAL = re.compile(
    r"\[[A-Z]+\d*\]|<\|[^|<>]+\|>|</?(?:s|pad|unk|mask|bos|eos|cls|sep)>|<extra_id_\d+>"
)
_VISIBLE = {" ": SPACE, "\n": LINE, "\t": TAB, "\r": "␍", "\u00a0": SPACE, "▁": SPACE}
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, format, surrogate, separators
_JOINERS = "\u200c\u200d"  # of emoji, and of letters in Persian and Indian scripts
# Format characters that are seen: signs that Arabic and Syriac write around numbers.
_SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2}
_TAGS = range(0xE0020, 0xE0080)  # they follow a flag: Scotland, Wales


def shown(raw: Sequence[str], special: Sequence[bool] | None = None) -> list[str]:
    """Return each token of one stream as a person reads it; special tokens keep their spelling."""
    known = [False] * len(raw) if special is None else list(special)
    byte_level = _is_byte_level([token for token, flag in zip(raw, known, strict=True) if not flag])
    return [
        visible(token) if flag else visible(_letters(token, byte_level))
        for token, flag in zip(raw, known, strict=True)
    ]


def shown_by_stream(
    streams: Sequence[str], raw: Sequence[str], special: Sequence[bool]
) -> list[str]:
    """Return each token of several streams as a person reads it.

    All tokens of a stream together show which marks it uses. Equal tokens are read once.
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
    """Return the kind of a shown token: letters, number, punctuation or space.

    The only rule of what punctuation is: it has visible characters, but no letter and no number.
    """
    bare = text.strip(MARKS)
    if not bare:
        return "space"
    groups = {unicodedata.category(letter)[0] for letter in bare}
    return "letters" if "L" in groups else "number" if "N" in groups else "punctuation"


def is_punctuation(text: str) -> bool:
    """Tell whether a shown token is punctuation."""
    return token_kind(text) == "punctuation"


def looks_special(raw: str) -> bool:
    """Tell whether a raw token is spelled like a special one, where no tokenizer says it."""
    return _SPECIAL.fullmatch(raw) is not None


def words(raw: Sequence[str], special: Sequence[bool]) -> list[int]:
    """Return the number of the word of each token, by the marks; -1 for special tokens."""
    begins = _beginnings(raw, special)
    numbers, count, fresh = [], -1, True
    for starts, flag in zip(begins, special, strict=True):
        if flag:
            numbers.append(-1)
            fresh = True
            continue
        count += starts or fresh
        numbers.append(count)
        fresh = False
    return numbers


def _beginnings(raw: Sequence[str], special: Sequence[bool]) -> list[bool]:
    """Tell for each token whether it starts a word, by the marks that this stream uses."""
    plain = [token for token, flag in zip(raw, special, strict=True) if not flag]
    if any(token[:1] in ("Ġ", "▁", "Ċ") for token in plain):
        return [token[:1] in ("Ġ", "▁", "Ċ") for token in raw]
    for ending, inside in (("</w>", False), ("@@", True)):
        if any(token.endswith(ending) and token != ending for token in plain):
            before = [token.endswith(ending) != inside for token in raw]
            return [True, *before[:-1]]
    return [not token.startswith("##") for token in raw]


def visible(text: str) -> str:
    """Return a text in which spaces, line ends and control characters are visible marks."""
    marked = "".join(
        _mark(letter, text[i - 1] if i else "", text[i + 1 : i + 2])
        for i, letter in enumerate(text)
    )
    return marked or NOTHING


def _mark(letter: str, before: str, after: str) -> str:
    """Return how a letter is seen between two others; they are empty at the ends of its token."""
    if _joins(letter, before, after) or ord(letter) in _SEEN:
        return letter
    if unicodedata.category(letter).startswith("M"):
        # alone it would stand on the quote or space that happens to be before it
        return letter if _carries(before) else CIRCLE + letter
    if letter in _VISIBLE:
        return _VISIBLE[letter]
    if unicodedata.category(letter) in _INVISIBLE:
        return f"⟨U+{ord(letter):04X}⟩"
    return SPACE if letter.isspace() else letter


def _carries(before: str) -> bool:
    """Tell whether a mark may stand on the character before it."""
    return before != "" and (before in _JOINERS or unicodedata.category(before)[0] in "LMNPS")


def _joins(letter: str, before: str, after: str) -> bool:
    """Tell whether a character joins its neighbours and is not seen itself."""
    if ord(letter) in _TAGS or ord(letter) == 0xE007F:
        return bool(before) and (before == "\U0001f3f4" or ord(before) in _TAGS)
    return letter in _JOINERS and _carries(before) and bool(after) and not after.isspace()


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
    """Decode bytes: whole letters as letters, the bytes of a cut letter as their numbers."""
    text = piece.decode("utf-8", errors="surrogateescape")
    return "".join(
        f"⟨{''.join(f'{ord(byte) - 0xDC00:02X}' for byte in run)}⟩" if cut else "".join(run)
        for cut, run in groupby(text, _is_byte)
    )


def _is_byte(letter: str) -> bool:
    return 0xDC80 <= ord(letter) <= 0xDCFF


def _byte_alphabet() -> dict[str, int]:
    """Return GPT-2's letters for bytes: printable ones as themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    return alphabet | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_alphabet()
# Whole letters of UTF-8, and a piece of it: it may begin and end within a letter.
_WHOLE = (
    rb"(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})*"
)
_CUT = rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})?"
_PIECE_WHOLE = re.compile(_WHOLE)
_PIECE = re.compile(rb"[\x80-\xbf]{0,3}" + _WHOLE + _CUT)


def _is_byte_level(raw: Sequence[str]) -> bool:
    """Tell whether the letters stand for bytes.

    A byte-level space mark says so. Without one, as in Chinese, they do if some tokens are not
    ASCII, all of those can be pieces of UTF-8, and one is a whole letter or has a letter that only
    the alphabet of bytes has: "Ã©" is not a likely text of its own, but "«" and "café" are.
    """
    if any("▁" in token for token in raw):
        return False
    if any(letter in token for token in raw for letter in "ĠĊĉč"):
        return True
    beyond = [token.removesuffix("</w>") for token in raw if not token.isascii()]
    pieces = [_bytes_of(token) for token in beyond]
    return (
        bool(beyond)
        and all(piece is not None and _PIECE.fullmatch(piece) for piece in pieces)
        and any(
            max(token) >= "\u0100" or _PIECE_WHOLE.fullmatch(piece or b"")
            for token, piece in zip(beyond, pieces, strict=True)
        )
    )


def _bytes_of(token: str) -> bytes | None:
    """Return the bytes that the letters stand for; None if one of them stands for none."""
    if not all(letter in _BYTES for letter in token):
        return None
    return bytes(_BYTES[letter] for letter in token)


def can_be_written(text: str) -> bool:
    """Tell whether a text has no lone half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
