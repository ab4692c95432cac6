"""What is one piece of work, and who runs it?"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Job:
    """One piece of work as data: the name of a function, and its argument as JSON."""

    name: str
    work: str  # "module:function"
    asked: Mapping[str, Any]
    gpus: int = 0
    cpus: int = 1  # threads that it computes with
    large: bool = False  # its result may be left in a shared folder

    def run(self) -> Any:
        """Call the function in this process and return its result."""
        module, _, function = self.work.partition(":")
        return getattr(import_module(module), function)(self.asked)


Done = Callable[[Job, Any], None]


@runtime_checkable
class Engine(Protocol):
    """A way to run jobs that do not depend on each other."""

    @property
    def apart(self) -> bool:
        """Tell whether jobs run in other processes, which get nothing but their JSON."""

    def run(self, jobs: Iterable[Job], done: Done) -> None:
        """Run all jobs in any order; pass each result to `done`.

        A result is JSON, a `Contents`, or several of these by name. `done` runs in the caller's
        process, for one job at a time unless the engine has several writers. An exception from a
        job or from `done` ends the run and is raised here.
        """
