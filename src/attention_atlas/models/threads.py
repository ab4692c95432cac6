"""How many threads do torch and the matrix libraries take for a piece of work?

Each takes as many as there are cores, and those of one product wait for each other, spinning. When
another thread needs a core meanwhile, one of them comes late and all others burn theirs: on two
cores beside 50 people, an edit of 0.4 s took 17. So work beside others leaves a core to them.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock, local

from threadpoolctl import threadpool_limits

from attention_atlas.store.cores import cores


def beside_others() -> int:
    """Return how many threads heavy work takes in a process that has other things to do."""
    return max(1, cores() - 1)


class _TorchThreads:
    """How many threads torch takes: of the process outside of all blocks, and in each block.

    What a thread sets is also what threads that are new to torch begin with. So a block must not
    take for usual what the block of another thread has set.
    """

    def __init__(self) -> None:
        self._changing, self._blocks, self._usual = Lock(), 0, 0
        self._here = local()  # the counts of the blocks that this thread is in

    @contextmanager
    def at_most(self, count: int) -> Iterator[None]:
        import torch

        outer: list[int] = self._here.__dict__.setdefault("counts", [])
        with self._changing:
            if not self._blocks:
                self._usual = torch.get_num_threads()
            self._blocks += 1
            outer.append(min(count, outer[-1] if outer else self._usual))
            torch.set_num_threads(outer[-1])
        try:
            yield
        finally:
            with self._changing:
                outer.pop()
                self._blocks -= 1
                torch.set_num_threads(outer[-1] if outer else self._usual)


_TORCH = _TorchThreads()


def torch_threads(count: int) -> AbstractContextManager[None]:
    """Let torch use at most `count` threads for what this thread computes inside the block."""
    return _TORCH.at_most(count)


@contextmanager
def matrix_threads(count: int) -> Iterator[None]:
    """Let the matrix libraries of NumPy use at most `count` threads, in the whole process."""
    with threadpool_limits(count, "blas"):
        yield
