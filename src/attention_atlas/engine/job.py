"""What is one piece of work, and who runs it?"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol


@dataclass(frozen=True)
class Job:
    """One piece of work as data: a function, named, and the JSON that it is asked with."""

    name: str
    work: str  # "module:function"
    asked: Mapping[str, Any]
    gpus: int = 0

    def run(self) -> Any:
        """Call the function in this process; gives its result."""
        module, _, function = self.work.partition(":")
        return getattr(import_module(module), function)(self.asked)


Done = Callable[[Job, Any], None]


class Engine(Protocol):
    """Runs jobs that do not depend on each other."""

    def run(self, jobs: Iterable[Job], done: Done) -> None:
        """Run all jobs in any order; hand each result to `done`.

        `done` runs in the caller's process, for one job at a time: nobody else writes. What a job
        or `done` raises ends the run and is raised here.
        """
