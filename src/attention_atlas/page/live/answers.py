"""How are the requests of a page answered? Every path and every action gets one packet.

The table of packets lists the paths. Server, notebook and saved file differ only in how the bytes
travel, which this module does not know. It never opens a file by a name that came from outside.
"""

import threading
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from cachetools import LRUCache

from attention_atlas.names.errors import AtlasError, PickError
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.moved import view_as
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.answers.session import Other, Session
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.live.actions import perform
from attention_atlas.page.live.background import BackgroundWork
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.about import Neighbour
from attention_atlas.page.wire.packing import Failure, pack
from attention_atlas.store.reader import StoredAtlas

KEPT = 64_000_000  # bytes of packets kept for repeated requests
_LONGEST = 400  # characters of a path
AS = "as"  # before a path: what is shown in place of weights, and the keys that are taken out

Models = Sequence[LiveModel | None]  # one per subject, or None


class Answers:
    """The packets of one subject, with recent ones kept; with `work` its page may send actions."""

    def __init__(
        self,
        subject: Subject,
        work: BackgroundWork | None = None,
        others: Sequence[Other] = (),
    ):
        self.session, self.work = Session(subject, tuple(others), work), work
        self._kept: LRUCache[str, bytes] = LRUCache(KEPT, getsizeof=len)
        self._lock = threading.Lock()
        if work is not None:
            work.finished = self._forget

    def packet(self, path: str) -> tuple[bytes, bool]:
        """Return the packet of a path, and whether it is the answer (True) or a Failure."""
        with self._lock:
            kept = self._kept.get(path)
        if kept is not None:
            return kept, True
        packet, answered = _packed(lambda: self.answer(path))
        words = path.split("/", 4)
        row = PACKETS.get(words[3] if words[0] == AS and len(words) > 3 else words[0])
        if answered and row is not None and not row.changes and len(packet) <= KEPT:
            with self._lock:
                self._kept[path] = packet
        return packet, answered

    def perform(self, name: str, body: object) -> tuple[bytes, bool]:
        """Do an action; return its packet, and whether it was done (True) or refused."""
        return _packed(lambda: perform(self.work, name, body))

    def answer(self, path: str) -> Any:
        """Return the dataclass of a path; a PickError says what there is instead."""
        if len(path) > _LONGEST:
            raise PickError(f"this path is too long; give at most {_LONGEST} characters")
        subject = self.session.subject
        word, *rest = path.split("/")
        if word == AS and len(rest) > 2:
            how, without, word, *rest = rest
            subject = view_as(subject, how, without)
        row = PACKETS.get(word)
        if row is None:
            raise PickError(f"no packet is named {word[:40]!r}; there is {', '.join(PACKETS)}")
        known = self.session if row.of == "session" else subject
        return row.answer(known, *row.read(rest))

    def _forget(self) -> None:
        """Drop all kept packets: a map may have been computed again."""
        with self._lock:
            self._kept.clear()


def _packed(make: Callable[[], Any]) -> tuple[bytes, bool]:
    try:
        return pack(make()), True
    except AtlasError as problem:
        return pack(Failure(str(problem))), False


def make_answers(subjects: Sequence[Subject], models: Models = ()) -> list[Answers]:
    """Make the Answers of each subject; the other subjects are there to be compared with."""
    answers = []
    for number, (subject, model) in enumerate(zip_longest(subjects, models)):
        others = [
            Other(_neighbour(_way(number, place), other), other)
            for place, other in enumerate(subjects)
            if place != number
        ]
        if isinstance(subject, StoredAtlas):
            grown = Grown(subject)
            answers.append(Answers(grown, BackgroundWork(grown, model), others))
        else:
            answers.append(Answers(subject, None, others))
    return answers


def _neighbour(way: str, subject: Subject) -> Neighbour:
    """Return what a page lists of another subject; no file is read, since it may be damaged."""
    if isinstance(subject, StoredAtlas):
        return Neighbour(way, subject.manifest.model, subject.manifest.inputs)
    return Neighbour(way, "Attention", 1)


def _way(start: int, end: int) -> str:
    """Return the relative address from one atlas's page to another's; the first is at the root."""
    return ("" if start == 0 else "../") + ("" if end == 0 else f"{end}/") or "./"
