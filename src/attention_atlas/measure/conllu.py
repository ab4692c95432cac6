"""Which word depends on which, according to a CoNLL-U file?"""

from dataclasses import dataclass
from pathlib import Path

from attention_atlas.names.errors import InputError


@dataclass(frozen=True)
class Word:
    """A word of a sentence and the word it depends on."""

    start: int  # characters in the sentence's text
    end: int
    head: int  # index of the word it depends on, −1: the root
    relation: str  # without its subtype


@dataclass(frozen=True)
class Sentence:
    """A text with its words."""

    text: str
    words: tuple[Word, ...]


def read_conllu(path: str | Path) -> list[Sentence]:
    """Read all sentences of a file."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{file} cannot be read: {problem}") from problem
    blocks = [block for block in text.split("\n\n") if block.strip()]
    sentences = [_sentence(block.splitlines(), file, place) for place, block in enumerate(blocks)]
    if not sentences:
        raise InputError(f"{file.name} holds no sentence in CoNLL-U; give a file that does")
    return sentences


def _sentence(lines: list[str], file: Path, place: int) -> Sentence:
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    if not rows or any(len(row) != 10 for row in rows):
        raise InputError(
            f"{file.name}, sentence {place}: a line does not have the ten columns of CoNLL-U"
        )
    given = [line[len("# text = ") :] for line in lines if line.startswith("# text = ")]
    words = [row for row in rows if row[0].isdigit()]
    text = given[0] if given else _joined(words)
    spans = _spans(text, [row[1] for row in words], file, place)
    try:
        heads = [int(row[6]) - 1 for row in words]
    except ValueError as problem:
        raise InputError(f"{file.name}, sentence {place}: a head is not a number") from problem
    return Sentence(
        text,
        tuple(
            Word(start, end, head, row[7].partition(":")[0])
            for (start, end), head, row in zip(spans, heads, words, strict=True)
        ),
    )


def _joined(words: list[list[str]]) -> str:
    return "".join(row[1] + ("" if "SpaceAfter=No" in row[9] else " ") for row in words).rstrip()


def _spans(text: str, forms: list[str], file: Path, place: int) -> list[tuple[int, int]]:
    """Find the span of each word; parts of a contraction that the text does not spell share one."""
    spans, reached = [], 0
    for form in forms:
        start = text.find(form, reached)
        if start < 0:
            start, end = reached, min(len(text), reached + 1)
        else:
            end = start + len(form)
            reached = end
        spans.append((start, end))
    if reached == 0:
        raise InputError(f"{file.name}, sentence {place}: its text holds none of its words")
    return spans
