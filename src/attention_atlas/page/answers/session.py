"""What belongs to one open page? Its subject, the other subjects and its background work."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.wire.about import Neighbour, StoryStep
from attention_atlas.page.wire.lab import EditProofs
from attention_atlas.page.wire.maps import MapProgress
from attention_atlas.page.wire.queue import Queued


class Work(Protocol):
    """The background work of one atlas, as far as a page sees it."""

    def progress(self) -> MapProgress: ...
    def edit_receipt(self) -> EditProofs: ...
    def offers(self) -> Mapping[str, Any]:
        """Return the fields of `about` that say which actions are possible."""
        ...


class PageQueue(Protocol):
    """The queue of a server, as far as a page sees it."""

    def of_page(self, page: str) -> Queued: ...


@dataclass(frozen=True)
class Other:
    """Another subject of the same server; `info` is what a page shows of it."""

    info: Neighbour
    subject: Subject


@dataclass(frozen=True)
class Session:
    """One subject, the others of its server, and its work; without work a page has no actions."""

    subject: Subject
    others: tuple[Other, ...] = ()
    work: Work | None = None
    queue: PageQueue | None = None
    story: tuple[StoryStep, ...] = ()
