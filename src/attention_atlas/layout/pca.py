"""In which few directions does a head spread its queries and keys the most?

Principal components by the (width, width) covariance, all heads in one batch. The sign of each
axis is fixed by its largest entry, so two runs agree. Missing directions are filled with 0.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.neighbours import Neighbours
from attention_atlas.layout.place import Known

WIDEST_AT_ONCE = 32  # matrices whose eigenvectors a GPU computes in one batch
ITERATIONS = 60


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
    directions = leading_directions(covariance, dims)
    largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))
    directions = directions * largest.sign()
    missing = dims - directions.shape[2]
    return Axes(centre, torch.nn.functional.pad(directions, (0, missing)).to(points.dtype))


def leading_directions(covariance: Tensor, dims: int) -> Tensor:
    """Find the eigenvectors of the largest eigenvalues, largest first; (heads, width, dims).

    A GPU has no eigenvectors of many wide matrices at once, so there they are iterated.
    """
    if covariance.is_cuda and covariance.shape[1] > WIDEST_AT_ONCE:
        return iterated_directions(covariance, dims)
    every: Tensor = torch.linalg.eigh(covariance).eigenvectors
    return every[:, :, -dims:].flip(2)


def iterated_directions(covariance: Tensor, dims: int) -> Tensor:
    """Find the same by iterating a few more directions than asked for, then sorting them out."""
    width = covariance.shape[1]
    count = min(width, 4 * dims + 8)
    dice = torch.Generator().manual_seed(0)
    start = torch.randn(width, count, generator=dice, dtype=covariance.dtype)
    basis = start.to(covariance.device).expand(len(covariance), -1, -1)
    for _ in range(ITERATIONS):
        basis = _orthonormal(covariance @ basis)
    _, turns = torch.linalg.eigh(basis.transpose(1, 2) @ covariance @ basis)
    turned: Tensor = basis @ turns
    return turned[:, :, -dims:].flip(2)


def _orthonormal(columns: Tensor) -> Tensor:
    """Turn columns (heads, width, count) into orthonormal ones of the same span."""
    for _ in range(2):  # the second time corrects the rounding of the first
        columns = columns / columns.norm(dim=1, keepdim=True).clamp_min(1e-150)
        products = columns.transpose(1, 2) @ columns
        diagonal = products.diagonal(dim1=1, dim2=2)
        diagonal += 1e-13
        factor = torch.linalg.cholesky(products).transpose(1, 2)  # upper
        columns = torch.linalg.solve_triangular(factor, columns, upper=True, left=False)
    return columns


def pca(points: Tensor, dims: int) -> Tensor:
    """Project points (heads, N, width) on their principal axes; returns (heads, N, dims)."""
    return fit_axes(points, dims).project(points)


def lay_out(points: Tensor, dims: int, near: Neighbours, seed: int) -> Tensor:
    """Place points as `pca` does; neither neighbours nor a seed are needed."""
    return pca(points, dims)


def place(new: Tensor, known: Known) -> Tensor:
    """Fit the axes of the known points again and project the new ones on them."""
    return fit_axes(known.points, known.places.shape[2]).project(new)
