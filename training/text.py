"""What text do the language models read, and what is held out?

A file of books, each after a line `=== Title_number ===`, becomes paragraphs with plain quotes.
Every book is cut into stretches of consecutive paragraphs; one stretch in fifty is held out, so
held-out text is running prose of the same authors that no model or tokenizer has seen.
"""

import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

STRETCH = 40
HELD_OUT_ONE_IN = 50
SHORTEST = 40

_TITLE = re.compile(r"^=== (?P<title>.+)_(?P<number>\d+) ===$", re.MULTILINE)
_PLAIN = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "_": None, "\ufeff": None})
_NOT_PROSE = re.compile(r"produced by|e-text prepared|\[illustration", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]*[A-Z])")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|[A-Z])\.$")


@dataclass(frozen=True)
class Stream:
    """Token ids one after another, and where each paragraph or sentence starts in them."""

    tokens: np.ndarray
    starts: np.ndarray

    @classmethod
    def encode(cls, pieces: list[str], ids_of: Callable[[list[str]], list[list[int]]]) -> "Stream":
        ids = ids_of(pieces)
        lengths = [len(piece) for piece in ids]
        starts = np.cumsum([0, *lengths[:-1]])
        return cls(np.concatenate([np.array(piece, np.uint16) for piece in ids]), starts)

    @classmethod
    def load(cls, path: Path) -> "Stream":
        with np.load(path) as file:
            return cls(file["tokens"], file["starts"])

    def save(self, path: Path) -> None:
        np.savez(path, tokens=self.tokens, starts=self.starts.astype(np.int32))


def books(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Title and paragraphs of each book."""
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        _, *parts = _TITLE.split(file.read())
    for title, text in zip(parts[0::3], parts[2::3], strict=True):
        yield title.replace("-", " "), paragraphs(text)


def paragraphs(text: str) -> list[str]:
    """Blocks between empty lines, on one line each; headings and editors' notes are left out."""
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", text.translate(_PLAIN)))
    return [b for b in blocks if len(b) > SHORTEST and not _NOT_PROSE.match(b)]


def split(path: Path, seed: int) -> tuple[list[str], list[str]]:
    """Paragraphs to train on, and paragraphs held out."""
    stretches = [
        text[start : start + STRETCH]
        for _, text in books(path)
        for start in range(0, len(text), STRETCH)
    ]
    rng = np.random.default_rng(seed)
    held_out = set(rng.permutation(len(stretches))[: len(stretches) // HELD_OUT_ONE_IN].tolist())
    return (
        [p for i, part in enumerate(stretches) if i not in held_out for p in part],
        [p for i, part in enumerate(stretches) if i in held_out for p in part],
    )


def sentences(paragraph: str) -> list[str]:
    """Sentences by their full stops, good enough to pack pairs; `Mr.` and initials end none."""
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph[: end.start()]):
            found.append(paragraph[start : end.end()].strip())
            start = end.end()
    return [s for s in [*found, paragraph[start:].strip()] if s]
