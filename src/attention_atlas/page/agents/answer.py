"""How large is the answer of a tool? At most 4,000 tokens; `more` says what was left out.

A token is counted as three characters of the answer's JSON. English has four to five characters a
token and numbers have two to three, so this is on the safe side for what we answer.
"""

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

MOST_TOKENS = 4000
CHARACTERS = 3  # of a token
_CUT = 8  # of a list that is too long, one part in so many is taken away at a time


class Answer(BaseModel):
    """What a tool answers; `more` says what was left out and how to get it."""

    model_config = ConfigDict(extra="forbid")

    more: list[str] = Field(default_factory=list)


A = TypeVar("A", bound=Answer)


def text_of(answer: BaseModel) -> str:
    """Return an answer as JSON."""
    return answer.model_dump_json()


def count_tokens(text: str) -> int:
    """Count the tokens of a text by the rule of this module."""
    return math.ceil(len(text) / CHARACTERS)


def fit(answer: A) -> A:
    """Shorten the longest lists of an answer until it is small enough; `more` says so."""
    lost: dict[str, int] = {}
    fitting = answer
    while count_tokens(text_of(fitting)) > MOST_TOKENS:
        lists = {name: value for name, value in fitting if name != "more" and _is_long(value)}
        if not lists:
            break
        name = max(lists, key=lambda each: len(str(lists[each])))
        gone = max(1, len(lists[name]) // _CUT)
        lost[name] = lost.get(name, 0) + gone
        said = [_left_out(each, count, len(getattr(answer, each))) for each, count in lost.items()]
        change = {name: lists[name][:-gone], "more": [*answer.more, *said]}
        fitting = fitting.model_copy(update=change)
    return fitting


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1


def _left_out(name: str, gone: int, total: int) -> str:
    return (
        f"the last {gone} of {total} {name} are left out to stay below {MOST_TOKENS} tokens; ask "
        "for fewer at once"
    )


def small(value: Any) -> float | None:
    """Return a number with four digits that count; None if it is no finite number."""
    number = float(value)
    return float(f"{number:.4g}") if math.isfinite(number) else None


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters; a dot stands for the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"


def page_of(items: Sequence[Any], start: int, limit: int, what: str) -> tuple[list[Any], list[str]]:
    """Return the items from `start` on, at most `limit`, and a sentence if others are left."""
    shown = list(items[start : start + limit])
    end = start + len(shown)
    if not shown and items:
        return [], [f"there are {len(items)} {what}, so none from {start} on; ask with start=0"]
    if end >= len(items):
        return shown, []
    return shown, [f"{what} {start} to {end - 1} of {len(items)}; ask with start={end} for others"]
