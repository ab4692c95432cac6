"""Which layouts are there, and what does each need?

A layout is a file with two functions and a line in this table. `lay_out(points, dims, near, seed)`
gives places (heads, points, dims); `place(new, known)` gives the places of new points on a map that
stays as it is. Nothing here needs torch, so that a page or a command line can read the table.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attention_atlas.names.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from attention_atlas.layout.attended import AttentionGraph
    from attention_atlas.layout.neighbours import Neighbours

DIMS = (2, 3)
FEWEST = 5  # points; a map of fewer is their PCA, since there is nothing to arrange


@dataclass(frozen=True)
class Method:
    """A way to find places: where its code is, what it needs, what it costs."""

    title: str
    module: str
    neighbours: int  # of each point
    costs: tuple[float, float, float]  # seconds a head, a thousand points, a million pairs of them

    @property
    def code(self) -> Any:
        """Load the module with `lay_out` and `place`."""
        return import_module(self.module)


METHODS = {
    "umap": Method("UMAP", "attention_atlas.layout.umap", 14, (0.4, 0.25, 0.005)),
    "tsne": Method("t-SNE", "attention_atlas.layout.tsne", 90, (0.6, 0.55, 0.0)),
    "pca": Method("PCA", "attention_atlas.layout.pca", 0, (0.02, 0.12, 0.01)),
}


def find_method(name: str, dims: int = 2) -> Method:
    """Look a method up; refuses names and dimensions that do not exist."""
    if name not in METHODS:
        raise InputError(f"no layout is named {name!r}; there are: {', '.join(METHODS)}")
    if dims not in DIMS:
        raise InputError(f"a map has 2 or 3 dimensions, not {dims}; give 2 or 3")
    return METHODS[name]


def lay_out(
    points: "Tensor", method: str, dims: int, near: "Neighbours | AttentionGraph", seed: int = 0
) -> "Tensor":
    """Place points from `as_points`; returns (heads, points, dims). Equal points fall on 0."""
    chosen = find_method(method, dims)
    if points.shape[1] < FEWEST:
        chosen = METHODS["pca"]
    places: Tensor = chosen.code.lay_out(points, dims, near, seed)
    apart = (points - points[:, :1]).abs().amax((1, 2)) > 0  # (heads,)
    return places.where(apart[:, None, None], places.new_zeros(()))
