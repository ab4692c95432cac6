"""A Ray cluster on this machine with two workers, started once for the tests that need it."""

import gc
import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

ATTEMPTS = 4  # Ray gives itself 30 s to start, too little on a busy machine


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """Start Ray with two cores, little memory and no dashboard; return the module."""
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray

        if not any(_started(ray) for _ in range(ATTEMPTS)):
            pytest.fail("Ray did not start")
    yield ray
    ray.shutdown()


def _started(ray: Any) -> bool:
    try:
        ray.init(
            address="local", num_cpus=2, object_store_memory=100 * 2**20, include_dashboard=False,
            log_to_driver=False, logging_level="error",
        )  # fmt: skip
    except Exception as problem:
        if "timed out during startup" not in str(problem):
            raise
    else:
        return True
    ray.shutdown()
    gc.collect()  # its processes warn when they are forgotten
    return False
