"""When are two queries alike, and two keys?

Two queries are alike if they would attend alike: if their dot products with the keys of the map
differ little. Over all keys the mean square difference is (q − q')ᵀ C (q − q') with the covariance
C of the keys, so queries are turned by its root; for keys likewise with the queries. No basis of
the vectors is preferred: turning queries by any matrix and keys by its inverse changes nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_atlas.layout.pca import pca


@dataclass(frozen=True)
class Kinship:
    """The numbers that turn a head's queries and keys into points whose distance says how alike."""

    query_mean: Tensor  # (heads, 1, width)
    key_mean: Tensor
    query_root: Tensor  # (heads, width, width) applied to queries: from the keys' covariance
    key_root: Tensor

    def queries(self, queries: Tensor) -> Tensor:
        return (queries - self.query_mean) @ self.query_root

    def keys(self, keys: Tensor) -> Tensor:
        return (keys - self.key_mean) @ self.key_root


def fit_kinship(queries: Tensor, keys: Tensor) -> Kinship:
    """Fit to queries (heads, N, width) and keys (heads, M, width)."""
    query_mean, key_mean = queries.mean(1, keepdim=True), keys.mean(1, keepdim=True)
    return Kinship(query_mean, key_mean, _root(keys - key_mean), _root(queries - query_mean))


def common_axes(queries: Tensor, keys: Tensor, kin: Kinship, dims: int) -> Tensor:
    """Place points on the first singular vectors of the centred dot products; the map's start.

    On each axis a query and a key that lie on the same side raise each other's dot product, and
    queries (or keys) that attend alike lie together. Returns (heads, N + M, dims), spread 1.
    """
    rows = pca(kin.queries(queries), dims)
    directions = (queries - kin.query_mean).transpose(1, 2) @ rows  # (heads, width, dims)
    columns = (keys - kin.key_mean) @ directions
    return torch.cat([_spread_one(rows), _spread_one(columns)], 1)


def _spread_one(places: Tensor) -> Tensor:
    return places / places.std(1, unbiased=False, keepdim=True).clamp_min(1e-12)


def _root(vectors: Tensor) -> Tensor:
    """Find a matrix R with R Rᵀ the covariance of vectors; (heads, width, width).

    Cholesky's, since eigenvectors of many heads take a GPU one call after another. What is added to
    the diagonal lets a head have directions that no vector has.
    """
    vectors64 = vectors.double()
    covariance = vectors64.transpose(1, 2) @ vectors64 / vectors.shape[1]
    diagonal = covariance.diagonal(dim1=1, dim2=2)  # (heads, width), a view
    diagonal += 1e-10 * diagonal.mean(1, keepdim=True) + 1e-30
    root: Tensor = torch.linalg.cholesky(covariance)
    return root.to(vectors.dtype)
