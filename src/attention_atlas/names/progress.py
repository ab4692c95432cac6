"""How far along are we, and how long will it take?

One bar on stderr with the time left, drawn only for work of more than two seconds. Without a
terminal a line is printed every 30 seconds instead. A server shows the same counts to the page that
waits (`watched`), and work that nobody waits for any more stops at its next count.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from attention_atlas.names.wanted import stopper

_PATIENCE = 2.0  # seconds before a bar is drawn
_EVERY = 30.0  # seconds between lines without a terminal


class Progress(Protocol):
    """A function that is called with the count done so far, out of the total of the bar."""

    def __call__(self, done: int) -> None: ...


class Watcher(Protocol):
    """A function that is called with the count done so far and the total."""

    def __call__(self, done: int, total: int) -> None: ...


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Let `watcher` hear the counts of every bar that is opened inside."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def bar(label: str, total: int, show: bool) -> Iterator[Progress]:
    """Open a progress bar and yield the function to call with the count; draw only if `show`."""
    watcher, stop_if_unwanted = _watcher.get(), stopper()
    with _shown(label, total, show) as draw:

        def tick(done: int) -> None:
            stop_if_unwanted()
            draw(done)
            if watcher is not None:
                watcher(done, total)

        yield tick


@contextmanager
def _shown(label: str, total: int, show: bool) -> Iterator[Progress]:
    if not show:
        yield lambda done: None
    elif sys.stderr.isatty():
        with _drawn(label, total) as draw:
            yield draw
    else:
        yield _Lines(label, total)


@contextmanager
def _drawn(label: str, total: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    )
    task = bars.add_task(label, total=total)
    start, drawing = time.monotonic(), False

    def draw(done: int) -> None:
        nonlocal drawing
        if not drawing and time.monotonic() - start > _PATIENCE:
            bars.start()
            drawing = True
        bars.update(task, completed=done)

    try:
        yield draw
    finally:
        if drawing:
            bars.stop()


class _Lines:
    """Progress as lines on stderr, where there is no terminal."""

    def __init__(self, label: str, total: int):
        self.label, self.total = label, total
        self.start = self.said = time.monotonic()
        self.first: int | None = None

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        self.first = done if self.first is None else self.first
        if now - self.said < _EVERY or done <= self.first:
            return
        self.said = now
        left = (now - self.start) / (done - self.first) * (self.total - done)
        print(f"{self.label}: {done} of {self.total}, {left:.0f} s left", file=sys.stderr)
