"""How are the weights of an atlas written as plain arrays, for any other program?

One file, .npz or .safetensors, with an array for each input, tower and layer, (H, N, M) float32,
named as in `input0.decoder.L3`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from attention_atlas.names.errors import InputError
from attention_atlas.store.files import write_whole
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.store.rows import Float32, indexes

SUFFIXES = (".npz", ".safetensors")
MOST_BYTES = 2**32


def to_arrays(
    atlas: StoredAtlas, path: str | Path, *, inputs: Sequence[int] | None = None
) -> Path:  # fmt: skip
    """Write the weights of an atlas to one .npz or .safetensors file; returns its path.

    inputs  which inputs; None: all
    """
    place = Path(path)
    if place.suffix not in SUFFIXES:
        raise InputError(f"{place.name} is no name for arrays; end it in .npz or .safetensors")
    numbers = [int(number) for number in indexes(inputs, len(atlas), "inputs")]
    _check_size(atlas, numbers)
    arrays = dict(_arrays(atlas, numbers))
    if place.suffix == ".npz":
        write_whole(place, lambda part: _save(part, arrays))
    else:
        from safetensors.numpy import save_file

        write_whole(place, lambda part: save_file(arrays, part))
    return place


def _arrays(atlas: StoredAtlas, inputs: Sequence[int]) -> Iterator[tuple[str, Float32]]:
    for number in inputs:
        for tower in atlas.towers:
            for layer in tower.layers:
                name = f"input{number}.{tower.name}.L{layer.layer}"
                yield name, atlas.rows(number, layer.layer, tower.name)


def _check_size(atlas: StoredAtlas, inputs: Sequence[int]) -> None:
    size = 0
    for number in inputs:
        for tower in atlas.towers:
            for layer in tower.layers:
                heads, n, m = atlas.shape(number, layer.layer, tower.name)
                size += 4 * heads * n * m
    if size > MOST_BYTES:
        raise InputError(
            f"the weights of {len(inputs)} inputs take {size / 2**30:.0f} GB; name fewer with "
            "inputs=[0, 1], or read them one by one with atlas.weights"
        )


def _save(part: Path, arrays: dict[str, Float32]) -> None:
    with part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
