"""How far along are we, and how long will it take?

One bar on stderr with the time left, drawn only for work of more than two seconds. Without a
terminal a line is printed every 30 seconds instead.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_PATIENCE = 2.0  # seconds before a bar is drawn
_EVERY = 30.0  # seconds between lines without a terminal


class Progress(Protocol):
    """A function that is called with the count done so far, out of the total of the bar."""

    def __call__(self, done: int) -> None: ...


@contextmanager
def bar(label: str, total: int, show: bool) -> Iterator[Progress]:
    """Open a progress bar and yield the function to call with the count; draw only if `show`."""
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
