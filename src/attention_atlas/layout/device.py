"""What can this device do, and how many heads fit it at once?"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec

import torch

from attention_atlas.models.threads import torch_threads
from attention_atlas.names.errors import InputError

KNOWN = ("cpu", "cuda")
BYTES_A_TIE = 120  # of t-SNE while its graph is sorted: keys, order, weights, and their copies
SHARE_OF_FREE = 0.6
POINTS_AT_ONCE = 2_000  # of all heads together on a CPU: below, calls cost more than their work
MOST_POINTS = 3_000_000  # of one chunk: fills a GPU, while the vectors of the next chunk are read


@cache
def has_triton() -> bool:
    return find_spec("triton") is not None


def chosen_device(asked: str) -> str:
    """Replace "auto" by the device of this machine; returns its name."""
    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(asked)
    except RuntimeError:
        device = None
    if device is None or device.type not in KNOWN:
        raise InputError(f"no device is called {asked!r}; give auto, cpu, cuda or cuda:1")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"{asked} was asked for and there are {torch.cuda.device_count()} CUDA devices; "
            "give cpu or auto"
        )
    return asked


def heads_at_once(heads: int, points: int, neighbours: int, device: torch.device) -> int:
    """Count the heads that fit the device; on a CPU few points at once are fastest."""
    if device.type != "cuda":
        return max(1, min(heads, POINTS_AT_ONCE // max(1, points)))
    free = torch.cuda.mem_get_info(device)[0] * SHARE_OF_FREE
    each = points * max(neighbours, 64) * BYTES_A_TIE
    return max(1, min(heads, int(free / each), MOST_POINTS // max(1, points)))


@contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """Use one thread on a CPU: for such small pieces, waiting threads cost more than they give."""
    with torch_threads(1) if device.type == "cpu" else nullcontext():
        yield
