"""How is work shared among the cores? By threads: NumPy lets others run while it computes."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import TypeVar

from attention_atlas.names.wanted import stop_if_unwanted

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def each(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return the result of every item, in their order; stop when nobody wants them any more."""

    def run(context: Context, item: Item) -> Result:
        context.run(stop_if_unwanted)
        return context.run(work, item)

    contexts = [copy_context() for _ in items]
    workers = min(cores(), len(items))
    if workers < 2:
        return [run(context, item) for context, item in zip(contexts, items, strict=True)]
    with ThreadPoolExecutor(workers) as threads:
        return list(threads.map(run, contexts, items))
