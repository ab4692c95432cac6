"""Which layouts are there, and what does each need?

A layout is a function of (points, dims, near, seed) that gives places (heads, points, dims). A new
one is a file and a line in this table.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from attention_atlas.layout.neighbours import Neighbours
from attention_atlas.layout.pca import pca
from attention_atlas.layout.tsne import tsne
from attention_atlas.layout.umap import umap
from attention_atlas.names.errors import InputError

Layout = Callable[[Tensor, int, Neighbours, int], Tensor]

LAYOUTS: dict[str, Layout] = {"pca": pca, "tsne": tsne, "umap": umap}
NEIGHBOURS = {"pca": 0, "tsne": 90, "umap": 14}  # that each looks at
FEWEST = 5  # points; a map of fewer is their PCA, since there is nothing to arrange


def check_method(method: str, dims: int) -> None:
    if method not in LAYOUTS:
        raise InputError(f"no layout is named {method!r}; there are: {', '.join(LAYOUTS)}")
    if dims not in (2, 3):
        raise InputError(f"a map has 2 or 3 dimensions, not {dims}")


def neighbours_needed(methods: Iterable[str]) -> int:
    return max(NEIGHBOURS[method] for method in methods)


def lay_out(points: Tensor, method: str, dims: int, near: Neighbours, seed: int = 0) -> Tensor:
    """Places (heads, points, dims) of points from `as_points`; heads of equal points fall on 0."""
    check_method(method, dims)
    if points.shape[1] < FEWEST:
        return pca(points, dims)
    places = LAYOUTS[method](points, dims, near, seed)
    apart = (points - points[:, :1]).abs().amax((1, 2)) > 0  # (heads,)
    return torch.where(apart[:, None, None], places, 0)
