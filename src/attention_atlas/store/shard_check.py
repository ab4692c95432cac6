"""Does a file of vectors hold what the manifest says of a layer?

Types, shapes and numbers of blocks are compared before anything is computed of them, so that a file
which is whole but wrong is refused by a sentence. Only the header and the blocks are read.
"""

from collections.abc import Callable
from math import ceil

import numpy as np
import numpy.typing as npt

from attention_atlas.names.errors import StoreError
from attention_atlas.store.manifest import Layer
from attention_atlas.store.tensor_file import TensorFile

_FLOATS = ("float16", "float32", "float64")
Blocks = npt.NDArray[np.int32]


def check_layer(
    file: TensorFile, tower: str, layer: Layer, inputs: range, read: Callable[[str], Blocks]
) -> None:
    """Raise a StoreError if the tensors of a layer are not those of `inputs` of the atlas.

    `read` reads the blocks, once for this check and for whoever needs them next.
    """
    stem = f"{tower}.L{layer.layer}"
    _refuse(f"{stem}.blocks" not in file.names, file, f"it has no layer {layer.layer} of {tower}")
    _check_type(file, f"{stem}.blocks", ("int32",))
    _refuse(file.shape(f"{stem}.blocks")[1:] != (7,), file, f"the blocks of {stem} are no table")
    blocks = read(f"{stem}.blocks")
    numbers = blocks[:, 0]
    in_order = bool((np.diff(numbers) >= 0).all())
    known = not len(numbers) or (numbers[0] >= inputs.start and numbers[-1] < inputs.stop)
    _refuse(not (in_order and known), file, f"the blocks of {stem} are of other inputs")
    _refuse(bool((blocks[:, 1:3] < 0).any()), file, f"a block of {stem} has a size below zero")
    sizes = blocks[:, 1:3].astype(np.int64)
    n, m = (int(count) for count in sizes.sum(0))
    shapes = {
        "query": (layer.heads, n, layer.width), "key": (layer.groups, m, layer.width),
        "value": (layer.groups, m, layer.value_width), "lse": (layer.heads, n),
        "weights": (layer.heads, int((sizes[:, 0] * sizes[:, 1]).sum())),
        **({"sink": (layer.heads,)} if layer.sink else {}),
    }  # fmt: skip
    for what, shape in shapes.items():
        if f"{stem}.{what}" in file.names:
            _check_type(file, f"{stem}.{what}", _FLOATS)
            _check_shape(file, f"{stem}.{what}", [shape])
    _refuse(layer.sink and f"{stem}.sink" not in file.names, file, f"{stem} has no sinks")
    for row in np.unique(blocks[(blocks[:, 5:] >= 0).any(1)][:, [1, 2, 5, 6]], axis=0):
        _check_form(file, layer.heads, *(int(number) for number in row))


def _check_form(file: TensorFile, heads: int, n: int, m: int, mask: int, bias: int) -> None:
    """Check the mask and the bias that a block of n queries and m keys refers to."""
    if mask >= 0:
        _check_type(file, f"mask.{mask}", ("uint8",))
        _check_shape(file, f"mask.{mask}", [(h, n, ceil(m / 8)) for h in (1, heads)])
    if bias < 0:
        return
    shapes = {"columns": (m,), "offsets": (n + m - 1,), "dense": (n, m)}
    kind = next((kind for kind in shapes if f"bias.{bias}.{kind}" in file.names), None)
    if kind is None:
        raise _wrong(file, f"it has no bias.{bias}")
    _check_type(file, f"bias.{bias}.{kind}", _FLOATS)
    _check_shape(file, f"bias.{bias}.{kind}", [(h, *shapes[kind]) for h in (1, heads)])


def _check_type(file: TensorFile, name: str, types: tuple[str, ...]) -> None:
    kind = file.dtype(name).name
    _refuse(kind not in types, file, f"{name} is of type {kind}")


def _check_shape(file: TensorFile, name: str, shapes: list[tuple[int, ...]]) -> None:
    shape = file.shape(name)
    _refuse(shape not in shapes, file, f"{name} has shape {shape} instead of {shapes[-1]}")


def _refuse(wrong: bool, file: TensorFile, what: str) -> None:
    if wrong:
        raise _wrong(file, what)


def _wrong(file: TensorFile, what: str) -> StoreError:
    return StoreError(f"{file.path} does not fit its manifest: {what}; capture it again")
