"""Which actions may a page ask for? One row each: what is sent, what comes back, what does it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attention_atlas.names.errors import PickError
from attention_atlas.page.live.background import READ_ONLY, BackgroundWork
from attention_atlas.page.live.queue import LaneName
from attention_atlas.page.wire.actions import Add, Added, Cancel, Compute, Place
from attention_atlas.page.wire.lab import EditedInput, EditInput, LabelQuestion, LabelVerdict
from attention_atlas.page.wire.maps import MapProgress
from attention_atlas.page.wire.queue import Leave, Queued
from attention_atlas.page.wire.reading import read


@dataclass(frozen=True)
class Action:
    """One row of the table of actions."""

    sent: type
    answer: type
    do: Callable[[BackgroundWork, Any], Any]
    lane: LaneName | None = None  # where it waits for its turn; None: it is done at once
    stops: bool = False  # it only ends other work, so a read-only server does it too


ACTIONS = {
    "compute": Action(Compute, MapProgress, BackgroundWork.compute),
    "place": Action(Place, MapProgress, BackgroundWork.place),
    "cancel": Action(Cancel, MapProgress, BackgroundWork.cancel, stops=True),
    "add": Action(Add, Added, BackgroundWork.add, "model"),
    "edit": Action(EditInput, EditedInput, BackgroundWork.edit, "model"),
    "test_label": Action(LabelQuestion, LabelVerdict, BackgroundWork.test_label, "model"),
    "leave": Action(Leave, Queued, BackgroundWork.leave, stops=True),
}


def perform(work: BackgroundWork | None, name: str, body: object) -> Any:
    """Do an action and return its answer; a PickError says what is wrong."""
    action = ACTIONS.get(name)
    if action is None:
        raise PickError(f"no action is named {name[:40]!r}; there is {', '.join(ACTIONS)}")
    if work is None:
        raise PickError("plain attention has no actions; capture the model: aa.capture(…)")
    if work.read_only and not action.stops:
        raise PickError(READ_ONLY)
    return action.do(work, read(action.sent, name, body))
