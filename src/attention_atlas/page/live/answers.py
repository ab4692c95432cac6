"""How are the requests of a page answered? Every path and every action gets one packet.

The table of packets lists the paths. Server, notebook and saved file differ only in how the bytes
travel, which this module does not know. It never opens a file by a name that came from outside.
"""

import threading
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from cachetools import LRUCache

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.grown import Grown
from attention_atlas.page.answers.moved import view_as
from attention_atlas.page.answers.packet import Packet
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.answers.session import Other, Session
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.live.actions import ACTIONS, perform
from attention_atlas.page.live.background import BackgroundWork
from attention_atlas.page.live.in_words import in_words
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.live.queue import LaneName, Queue
from attention_atlas.page.wire.about import Neighbour, StoryStep
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
        queue: Queue | None = None,
        story: Sequence[StoryStep] = (),
    ):
        self.queue = queue or Queue()
        self.session = Session(subject, tuple(others), work, self.queue, tuple(story))
        self.work = work
        self._kept: LRUCache[str, bytes] = LRUCache(KEPT, getsizeof=len)
        self._lock = threading.Lock()
        if work is not None:
            work.finished = self._forget

    def kept(self, path: str) -> bytes | None:
        """Get the packet of a path if it was made lately."""
        with self._lock:
            return self._kept.get(path)

    def lane(self, path: str) -> LaneName:
        """Tell where a request for a packet waits for its turn."""
        row = _row(path)
        return "slow" if row is not None and row.slow else "quick"

    def is_lasting(self, path: str) -> bool:
        """Tell whether a packet is the same for everybody who asks for it now."""
        row = _row(path)
        return row is not None and not row.changes

    def action_lane(self, name: str) -> LaneName | None:
        """Tell where an action waits for its turn; None if it is done at once."""
        return ACTIONS[name].lane if name in ACTIONS and self.work is not None else None

    def packet(self, path: str) -> tuple[bytes, bool]:
        """Return the packet of a path, and whether it is the answer (True) or a Failure."""
        kept = self.kept(path)
        if kept is not None:
            return kept, True
        packet, answered = _packed(lambda: self.answer(path))
        if answered and self.is_lasting(path) and len(packet) <= KEPT:
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


def _row(path: str) -> Packet | None:
    """Find the row of a path's packet, also behind `as/{how}/{keys}/`."""
    words = path.split("/", 4)
    return PACKETS.get(words[3] if words[0] == AS and len(words) > 3 else words[0])


def _packed(make: Callable[[], Any]) -> tuple[bytes, bool]:
    try:
        return pack(make()), True
    except Exception as problem:
        known = in_words(problem)
        if known is None:
            raise
        return pack(Failure(str(known))), False


def make_answers(
    subjects: Sequence[Subject],
    models: Models = (),
    read_only: bool = False,
    story: Sequence[StoryStep] = (),
) -> list[Answers]:
    """Make the Answers of each subject; the other subjects are there to be compared with.

    They share one queue. `read_only` answers do nothing but show what is there. The story is of the
    first subject.
    """
    answers, queue = [], Queue()
    for number, (subject, model) in enumerate(zip_longest(subjects, models)):
        others = [
            Other(_neighbour(_way(number, place), other, subjects), other)
            for place, other in enumerate(subjects)
            if place != number
        ]
        if isinstance(subject, StoredAtlas):
            grown = Grown(subject)
            work = BackgroundWork(grown, model, queue, read_only)
            told = () if number else story
            answers.append(Answers(grown, work, others, queue, told))
        else:
            answers.append(Answers(subject, None, others, queue))
    return answers


def _neighbour(way: str, subject: Subject, among: Sequence[Subject]) -> Neighbour:
    """Return what a page lists of another subject; no file is read, since it may be damaged.

    Where several have one model, as checkpoints do, their folders tell them apart.
    """
    if isinstance(subject, StoredAtlas):
        model = subject.manifest.model
        stored = [known for known in among if isinstance(known, StoredAtlas)]
        several = sum(known.manifest.model == model for known in stored) > 1
        name = f"{model} ({subject.path.name})" if several else model
        return Neighbour(way, name, subject.manifest.inputs)
    return Neighbour(way, "Attention", 1)


def _way(start: int, end: int) -> str:
    """Return the relative address from one atlas's page to another's; the first is at the root."""
    return ("" if start == 0 else "../") + ("" if end == 0 else f"{end}/") or "./"
