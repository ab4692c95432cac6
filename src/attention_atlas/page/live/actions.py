"""What may a page have done? One row an action: who does it, and what must be sent for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attention_atlas.names.errors import PickError
from attention_atlas.page.live.background import BackgroundWork
from attention_atlas.page.wire.actions import Add, Added, Cancel, Compute
from attention_atlas.page.wire.maps import MapProgress
from attention_atlas.page.wire.reading import read


@dataclass(frozen=True)
class Action:
    """One row of the table of actions."""

    sent: type
    answer: type
    do: Callable[[BackgroundWork, Any], Any]


ACTIONS = {
    "compute": Action(Compute, MapProgress, BackgroundWork.compute),
    "cancel": Action(Cancel, MapProgress, BackgroundWork.cancel),
    "add": Action(Add, Added, BackgroundWork.add),
}


def perform(work: BackgroundWork | None, name: str, body: object) -> Any:
    """Do what was asked for and return its answer; a PickError says what is wrong."""
    action = ACTIONS.get(name)
    if action is None:
        raise PickError(f"nothing to do is called {name[:40]!r}; there is {', '.join(ACTIONS)}")
    if work is None:
        raise PickError("this page shows attention as it was given; nothing can be done with it")
    return action.do(work, read(action.sent, name, body))
