"""What is open behind one page: its subject, those beside it, and the work done for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire.about import Neighbour
from attention_atlas.page.wire.maps import MapProgress


class Work(Protocol):
    """What is done in the background for one atlas, as far as a page is told of it."""

    def progress(self) -> MapProgress: ...
    def offers(self) -> Mapping[str, Any]:
        """Return the fields of `about` that say what may be asked for."""
        ...


@dataclass(frozen=True)
class Other:
    """Another subject of the same server; `info` is how a page is told of it."""

    info: Neighbour
    subject: Subject


@dataclass(frozen=True)
class Session:
    """One subject with what stands beside it; without work nothing can be done for its page."""

    subject: Subject
    others: tuple[Other, ...] = ()
    work: Work | None = None
