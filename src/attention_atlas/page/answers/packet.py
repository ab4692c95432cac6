"""What is one packet? A row of the table: its address, type, answer function and saved paths.

An address is a word and its parts: `edges/{input:int}/{tower}/{layer:int?}`. A part of kind int
reaches the answer function as a number; a part with a question mark may be left out.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.saving import Carried, never

_PART = re.compile(r"\{(?P<name>\w+)(?P<number>:int)?(?P<optional>\?)?\}")
_NUMBER = re.compile(r"[0-9]{1,9}")
LIVE = "; open the atlas with attention-atlas serve"
EXACT = "; save it with exact=True (on the command line --exact)"


@dataclass(frozen=True)
class Packet:
    """One row of the table of packets."""

    address: str
    type: type
    answer: Callable[..., Any]  # takes the subject or session, and the parts of the address
    saved: Carried = never
    missing: str = "this" + LIVE  # what a saved page without it says is missing
    of: Literal["subject", "session"] = "subject"  # the first argument of `answer`
    changes: bool = False  # it may differ each time, so it is never cached
    slow: bool = False  # it is computed, not just read; on a server it waits for its turn

    @property
    def word(self) -> str:
        return self.address.partition("/")[0]

    @property
    def parts(self) -> list[re.Match[str]]:
        return list(_PART.finditer(self.address))

    def read(self, words: Sequence[str]) -> list[str | int]:
        """Read the parts of a path as arguments of `answer`; a PickError says what is wrong."""
        least = sum(not part["optional"] for part in self.parts)
        if not least <= len(words) <= len(self.parts):
            path = "/".join([self.word, *words])
            raise PickError(f"{path[:80]!r} has the wrong number of parts; give {self.address}")
        return [_read(part, word) for part, word in zip(self.parts, words, strict=False)]


def _read(part: re.Match[str], word: str) -> str | int:
    if not part["number"]:
        return word
    if not _NUMBER.fullmatch(word):
        raise PickError(f"{word[:40]!r} is no {part['name']}; give its number, from 0")
    return int(word)
