"""Settings of every test, and the folders that all workers of a run share.

Property tests draw the same examples at every run, and a busy machine does not fail them.
"""

import os

import hypothesis
import pytest

from tests.made_once import MadeOnce, copier

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Returns a function that fills a folder once for all workers and returns a copy of it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return copier(shared, tmp_path_factory)
