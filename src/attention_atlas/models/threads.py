"""How many threads do torch and the matrix libraries take for a piece of work?

Each takes as many as there are cores, and those of one product wait for each other, spinning. When
another thread needs a core meanwhile, one of them comes late and all others burn theirs: on two
cores beside 50 people, an edit of 0.4 s took 17. So work beside others leaves a core to them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from attention_atlas.store.cores import cores


def beside_others() -> int:
    """Return how many threads heavy work takes in a process that has other things to do."""
    return max(1, cores() - 1)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use at most `count` threads for what this thread computes inside the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(min(count, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def matrix_threads(count: int) -> Iterator[None]:
    """Let the matrix libraries of NumPy use at most `count` threads, in the whole process."""
    with threadpool_limits(count, "blas"):
        yield
