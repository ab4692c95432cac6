"""Vectors made once, and one thread, on which every layout repeats."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from attention_atlas.layout.fidelity import Dots
from tests.layout import vectors


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def minilm() -> Dots:
    """Over made sentences that differ."""
    return vectors.head_vectors(vectors.sentences())


@pytest.fixture(scope="session")
def copies() -> Dots:
    """Over sentences that hardly differ."""
    return vectors.head_vectors(vectors.near_copies())


@pytest.fixture(scope="session")
def spiral() -> Tensor:
    return vectors.spiral()


@pytest.fixture(scope="session")
def clusters() -> tuple[Tensor, Tensor]:
    return vectors.clusters()
