"""A path goes in, one packet comes out; an action goes in, and a packet says what came of it.

Which paths there are is in the table of packets. Server, notebook and saved file differ only in how
the bytes travel. Here nothing knows which; and nothing here opens a file by a name that came from
outside.
"""

import threading
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from cachetools import LRUCache

from attention_atlas.names.errors import AtlasError, PickError
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.answers.session import Other, Session
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.live.actions import perform
from attention_atlas.page.live.background import BackgroundWork
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.wire.about import Neighbour
from attention_atlas.page.wire.packing import Failure, pack
from attention_atlas.store.reader import StoredAtlas

KEPT = 64_000_000  # bytes of packets kept for the next time they are asked for
_LONGEST = 200  # letters of a path

Models = Sequence[LiveModel | None]  # one a subject; None where there is none


class Answers:
    """Packets of one subject, the recent ones kept; with work its page may have things done."""

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
        """Return the packet of a path, and whether it is what was asked for or a Failure."""
        with self._lock:
            kept = self._kept.get(path)
        if kept is not None:
            return kept, True
        packet, found = _packed(lambda: self.answer(path))
        row = PACKETS.get(path.partition("/")[0])
        if found and row is not None and not row.changes and len(packet) <= KEPT:
            with self._lock:
                self._kept[path] = packet
        return packet, found

    def perform(self, name: str, body: object) -> tuple[bytes, bool]:
        """Do what a page asks for; return what came of it, and whether it was done or refused."""
        return _packed(lambda: perform(self.work, name, body))

    def answer(self, path: str) -> Any:
        """Return the dataclass of a path; a PickError says what there is instead."""
        if len(path) > _LONGEST:
            raise PickError(f"a path of {len(path)} letters is too long; {_LONGEST} is the most")
        word, *rest = path.split("/")
        row = PACKETS.get(word)
        if row is None:
            raise PickError(f"nothing is called {word[:40]!r}; there is {', '.join(PACKETS)}")
        known = self.session if row.of == "session" else self.session.subject
        return row.answer(known, *row.read(rest))

    def _forget(self) -> None:
        """A map may have been made anew."""
        with self._lock:
            self._kept.clear()


def _packed(make: Callable[[], Any]) -> tuple[bytes, bool]:
    try:
        return pack(make()), True
    except AtlasError as problem:
        return pack(Failure(str(problem))), False


def make_answers(subjects: Sequence[Subject], models: Models = ()) -> list[Answers]:
    """Return who answers for each subject; it looks at the others only to compare with them."""
    made = []
    for number, (subject, model) in enumerate(zip_longest(subjects, models)):
        others = [
            Other(_neighbour(_way(number, at), other), other)
            for at, other in enumerate(subjects)
            if at != number
        ]
        if isinstance(subject, StoredAtlas):
            grown = Grown(subject)
            made.append(Answers(grown, BackgroundWork(grown, model), others))
        else:
            made.append(Answers(subject, None, others))
    return made


def _neighbour(way: str, subject: Subject) -> Neighbour:
    """Reads no file: an atlas that is damaged must not keep the others from opening."""
    if isinstance(subject, StoredAtlas):
        return Neighbour(way, subject.manifest.model, subject.manifest.inputs)
    return Neighbour(way, "Attention", 1)


def _way(here: int, there: int) -> str:
    """Return the way from one atlas's page to another's; the first is at the root."""
    return ("" if here == 0 else "../") + ("" if there == 0 else f"{there}/") or "./"
