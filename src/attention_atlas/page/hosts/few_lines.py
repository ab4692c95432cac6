"""How long may the log of a server grow? Some lines a minute; how many were left out is said."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LINES, SECONDS = 30, 60.0
_LOGGERS = ("asyncio", "uvicorn.error", "attention_atlas")


class FewLines(logging.Filter):
    """A filter that lets some lines pass in every span of seconds."""

    def __init__(self, lines: int = LINES, seconds: float = SECONDS):
        super().__init__()
        self._lines, self._seconds = lines, seconds
        self._began, self._passed, self._left_out = -seconds, 0, 0
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line passes."""
        with self._lock:
            now = time.monotonic()
            if now - self._began >= self._seconds:
                if self._left_out:
                    record.msg = f"({self._left_out} lines before were left out) {record.msg}"
                self._began, self._passed, self._left_out = now, 0, 0
            self._passed += 1
            self._left_out += self._passed > self._lines
            return self._passed <= self._lines


@contextmanager
def few_lines() -> Iterator[None]:
    """Limit the log of servers while one runs."""
    limit = FewLines()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(limit)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(limit)
