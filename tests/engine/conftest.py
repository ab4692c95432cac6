"""A Ray cluster on this machine with two workers, started once for the tests that need it."""

import gc
import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from attention_atlas.engine.connect import start


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """Start Ray with two cores, little memory and no dashboard; return the module."""
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray

        start(ray, address="local", num_cpus=2, object_store_memory=100 * 2**20)
        gc.collect()  # processes of a failed start warn when they are forgotten
    yield ray
    ray.shutdown()
