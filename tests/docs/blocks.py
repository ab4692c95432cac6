"""Which blocks of code do the documents have, and which commands and names stand between words?"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^\s*```(\w*)\s*$")
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, its language and its text."""

    document: str
    line: int  # of its first line of code, from one
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def documents() -> list[str]:
    """List README and all documents below docs/."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def blocks(document: str) -> list[Block]:
    """Return all fenced blocks of a document, in their order."""
    found: list[Block] = []
    inside: list[str] | None = None
    language, start = "", 0
    for number, line in enumerate(_text(document).splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and inside is None:
            inside, language, start = [], fence[1], number + 1
        elif fence and inside is not None:
            found.append(Block(document, start, language, "\n".join(inside)))
            inside = None
        elif inside is not None:
            inside.append(line)
    assert inside is None, f"{document}: a block does not end"
    return found


def inline(document: str) -> list[str]:
    """Return the code that stands between words, without what is in blocks."""
    words, inside = [], False
    for line in _text(document).splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            words += _INLINE.findall(line)
    return words


def commands(code: str) -> list[list[str]]:
    """Return the commands of a block for a shell, without their comments."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def _text(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")
