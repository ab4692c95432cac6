"""In which few directions does a head spread its queries and keys the most?

Principal components by the (width, width) covariance, all heads in one batch. The sign of each
axis is fixed by its largest entry, so two runs agree. Missing directions are filled with 0.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.neighbours import Neighbours
from attention_atlas.layout.place import Known


@dataclass(frozen=True)
class Axes:
    """Where the points are centred and the directions they are projected on."""

    centre: Tensor  # (heads, 1, width)
    directions: Tensor  # (heads, width, dims)

    def project(self, points: Tensor) -> Tensor:
        return (points - self.centre) @ self.directions  # (heads, points, dims)


def fit_axes(points: Tensor, dims: int) -> Axes:
    centre = points.mean(1, keepdim=True)
    moved = points - centre
    covariance = (moved.transpose(1, 2) @ moved).double()  # (heads, width, width)
    directions = torch.linalg.eigh(covariance).eigenvectors[:, :, -dims:].flip(2)
    largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))
    directions = directions * largest.sign()
    missing = dims - directions.shape[2]
    return Axes(centre, torch.nn.functional.pad(directions, (0, missing)).to(points.dtype))


def pca(points: Tensor, dims: int) -> Tensor:
    """Project points (heads, N, width) on their principal axes; returns (heads, N, dims)."""
    return fit_axes(points, dims).project(points)


def lay_out(points: Tensor, dims: int, near: Neighbours, seed: int) -> Tensor:
    """Place points as `pca` does; neither neighbours nor a seed are needed."""
    return pca(points, dims)


def place(new: Tensor, known: Known) -> Tensor:
    """Fit the axes of the known points again and project the new ones on them."""
    return fit_axes(known.points, known.places.shape[2]).project(new)
