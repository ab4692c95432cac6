"""Are a block's numbers in NumPy or in torch?

A measure is written once. It calls functions that both libraries have under one name (`where`,
`sum`, `amax`, `einsum` …, with `axis=`) on `block.xp`, which is one of the two modules. NumPy's
functions let go of the interpreter, so a few threads of them use all cores; torch is for GPUs.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]  # or a torch tensor of floats
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def namespace(array: Any) -> Any:
    """Find the library of an array; returns the module `numpy` or `torch`."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    import torch  # only a tensor comes here, so it is loaded already

    return torch


def beside(array: Any, values: npt.NDArray[Any]) -> Any:
    """Put NumPy values where an array is; returns them in its library, on its device."""
    xp = namespace(array)
    return values if xp is np else xp.from_numpy(np.ascontiguousarray(values)).to(array.device)


def numbers(array: Any, *span: int) -> Any:
    """Make the whole numbers of a span, as `np.arange` does, where an array is.

    A GPU counts by itself: to copy numbers to it, it must first finish what it has to do.
    """
    xp = namespace(array)
    return np.arange(*span) if xp is np else xp.arange(*span, device=array.device)


def zeros(array: Any, shape: tuple[int, ...]) -> Any:
    """Make zeros of a shape, of an array's type, where it is."""
    return np.zeros(shape, array.dtype) if namespace(array) is np else array.new_zeros(shape)


def as_numpy(array: Any) -> npt.NDArray[Any]:
    """Copy an array of either library to NumPy."""
    return np.asarray(array if namespace(array) is np else array.cpu().numpy())


def all_as_numpy(states: Sequence[tuple[Any, ...]]) -> list[tuple[npt.NDArray[Any], ...]]:
    """Copy the arrays of several states to NumPy; those of a GPU in one copy, as float64."""
    far = [array for state in states for array in state if getattr(array, "is_cuda", False)]
    copies = iter(_in_one_copy(far) if far else ())
    return [
        tuple(
            next(copies) if getattr(array, "is_cuda", False) else as_numpy(array) for array in state
        )
        for state in states
    ]


def _in_one_copy(tensors: Sequence[Any]) -> list[npt.NDArray[Any]]:
    xp = namespace(tensors[0])
    # Joined by type first: to turn each into float64 by itself takes a kernel each.
    order = sorted(range(len(tensors)), key=lambda place: str(tensors[place].dtype))
    parts = [
        xp.cat([tensors[place].reshape(-1) for place in places]).to(xp.float64)
        for _, places in groupby(order, lambda place: tensors[place].dtype)
    ]
    flat = as_numpy(xp.cat(parts))
    ends = np.cumsum([tensors[place].numel() for place in order])
    copies = dict(zip(order, np.split(flat, ends[:-1]), strict=True))
    return [copies[place].reshape(tuple(x.shape)) for place, x in enumerate(tensors)]


def inner(left: Any, right: Any) -> Any:
    """Sum the products along the last axis, without holding them where the library can."""
    if namespace(left) is np:
        return np.einsum("...m,...m->...", left, right)
    return (left * right).sum(-1)


def lengths(vectors: Any) -> Any:
    """Compute the norms of vectors (…, D); returns (…)."""
    return namespace(vectors).sqrt(inner(vectors, vectors))
