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
    covariance = (vectors.transpose(1, 2) @ vectors).double() / vectors.shape[1]
    value, direction = torch.linalg.eigh(covariance)
    root: Tensor = direction * value.clamp_min(0).sqrt()[:, None]
    return root.to(vectors.dtype)
