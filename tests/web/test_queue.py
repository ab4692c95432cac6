"""The page of a busy server: the place of one's work, a way to give it up; and a read-only one."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

import attention_atlas as aa
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.lab_input import LabInput
from attention_atlas.page.live.model import LiveModel
from tests.web.conftest import PATIENCE

EDIT = {"input": 0, "edits": [aa.ablate("L4H5").to_json()]}


@pytest.fixture
def busy(
    built: None, subjects: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, threading.Event]]:
    """A server whose model is held by somebody else until the event is set."""
    may_end, running, real = threading.Event(), threading.Event(), LabInput.edit

    def slow(self: LabInput, asked: Any) -> Any:
        running.set()
        assert may_end.wait(PATIENCE)
        return real(self, asked)

    monkeypatch.setattr(LabInput, "edit", slow)
    with start([subjects["gpt"]], port=0, models=[LiveModel("builtin:gpt")]) as server:
        other = threading.Thread(
            target=httpx.post, args=[server.url + "api/edit"],
            kwargs={"json": EDIT, "headers": {"X-Atlas-Page": "other"}, "timeout": PATIENCE},
        )  # fmt: skip
        other.start()
        assert running.wait(PATIENCE)
        yield server.url, may_end
        may_end.set()
        other.join()


@pytest.mark.full
def test_the_page_shows_its_place_in_the_queue_and_cancels(
    page: Page, busy: tuple[str, threading.Event]
) -> None:
    url, may_end = busy
    page.goto(url + "#tab=lab")
    waiting = page.get_by_test_id("waiting")
    expect(waiting).to_contain_text("your edit waits, 1 before it", timeout=PATIENCE)
    expect(page.get_by_test_id("lab-wait")).to_have_text("Waiting for the model, 1 before it")
    began = time.monotonic()
    page.get_by_test_id("tab-text").click()  # the rest of the page does not wait
    page.wait_for_selector("html[data-state=ready]", timeout=PATIENCE)
    assert time.monotonic() - began < PATIENCE / 1000
    page.get_by_test_id("cancel-waiting").click()
    expect(waiting).to_have_count(0, timeout=PATIENCE)
    page.get_by_test_id("tab-lab").click()
    trouble = page.get_by_test_id("lab-trouble")
    expect(trouble).to_contain_text("This was cancelled", timeout=PATIENCE)
    may_end.set()
    trouble.get_by_role("button").click()
    expect(trouble).to_have_count(0, timeout=PATIENCE)
    expect(page.get_by_test_id("lab-wait")).to_have_count(0, timeout=PATIENCE)


@pytest.mark.full
def test_a_read_only_page_says_so_everywhere(
    page: Page, built: None, subjects: dict[str, Any], tmp_path: Path
) -> None:
    unmeasured = shutil.ignore_patterns("scores.parquet", "kinds.parquet")
    shutil.copytree(subjects["gpt"].path, tmp_path / "gpt.atlas", ignore=unmeasured)
    atlas = aa.open(tmp_path / "gpt.atlas")
    with start([atlas], port=0, read_only=True) as server:
        page.goto(server.url + "#tab=map")
        expect(page.get_by_test_id("read-only")).to_have_text("read-only", timeout=PATIENCE)
        expect(page.get_by_test_id("no-maps")).to_contain_text("This server is read-only")
        page.get_by_test_id("tab-lab").click()
        expect(page.get_by_test_id("sorry")).to_contain_text("This server is read-only")
        page.get_by_test_id("tab-heads").click()
        note = page.get_by_test_id("not-kept")
        expect(note).to_contain_text("These scores were measured now", timeout=PATIENCE)
