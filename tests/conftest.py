"""Settings of every test, and the folders that all workers of a run share.

Property tests draw the same examples at every run, and a busy machine does not fail them.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.made_once import MadeOnce, copier

if TYPE_CHECKING:
    from playwright.sync_api import Browser

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true", help="run also what is marked full: .ci/run does"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked full, unless --full asks for it."""
    if config.getoption("--full"):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("full")]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Returns a function that fills a folder once for all workers and returns a copy of it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return copier(shared, tmp_path_factory)


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Start one Chromium for all tests of a worker: Playwright cannot be started twice."""
    from playwright.sync_api import sync_playwright

    from attention_atlas.page.hosts.figure import FLAGS, find_browser

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        yield chromium
        chromium.close()
