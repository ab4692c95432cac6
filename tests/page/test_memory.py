"""A server that is used for long does not grow; `benchmarks/serve_load.py soak` is the long run."""

import gc
import random
import sys
import time
import weakref
from pathlib import Path

import pytest

import attention_atlas as aa
from attention_atlas.page.answers import edited
from attention_atlas.page.live import memory
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.memory import Tidy, give_back
from attention_atlas.page.live.model import LiveModel
from attention_atlas.page.live.queue import Queue


def anonymous() -> int:
    """The megabytes of this process that are not mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) // 1000


def use(answers: Answers, draw: random.Random, edits: int) -> None:
    """Edits with other factors each time, and ten views beside each edit."""
    for _ in range(edits):
        head = f"L{draw.randrange(6)}H{draw.randrange(6)}"
        body = {"input": draw.randrange(2), "edits": [aa.scale(head, draw.random()).to_json()]}
        assert answers.perform("edit", body)[1]
        for path in (f"edges/0/decoder/{draw.randrange(6)}", f"rows/1/{head}", "about"):
            for _ in range(3):
                assert answers.packet(path)[1]


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_edits_and_views_leave_nothing_behind(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept are the latest edited inputs, so the first rounds fill what later ones replace."""
    monkeypatch.setattr(edited, "KEPT", 8)
    (answers,) = make_answers([gpt], [LiveModel("builtin:gpt")])
    draw, sizes = random.Random(0), []
    for _ in range(4):
        use(answers, draw, 80)
        gc.collect()
        sizes.append(anonymous())
    assert sizes[-1] < 1.03 * sizes[1], sizes


@pytest.mark.skipif(sys.platform != "linux", reason="other allocators keep less")
def test_memory_freed_between_what_is_kept_goes_back_to_the_system() -> None:
    """One block in fifty is kept, so that the heap cannot shrink by itself."""
    blocks: list[bytearray | None] = [bytearray(60_000) for _ in range(1000)]
    full = anonymous()
    for place in range(len(blocks)):
        blocks[place] = blocks[place] if place % 50 == 0 else None
    give_back()
    assert anonymous() < full - 50, "58 MB of 60 were freed"


def test_a_server_tidies_after_work_and_not_after_each_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times: list[float] = []
    monkeypatch.setattr(memory, "give_back", lambda: times.append(time.monotonic()))
    often, seldom = Tidy(period=0.0), Tidy(period=1000.0)
    for _ in range(3):
        often.after_work()
    assert len(times) == 3
    seldom.after_work()
    assert len(times) == 3
    monkeypatch.setattr(memory, "PERIOD", 0.0)
    queue = Queue()
    queue.enter("quick", int).future.result(10)
    queue.enter("quick", int).future.result(10)
    end = time.monotonic() + 10
    while len(times) < 5 and time.monotonic() < end:
        time.sleep(0.01)
    assert len(times) == 5


def test_a_thread_that_waits_holds_no_answer() -> None:
    class Answer:
        pass

    ticket = Queue().enter("quick", Answer)
    held = weakref.ref(ticket.future.result(10))
    del ticket
    end = time.monotonic() + 3  # a thread without work ends after 5 seconds
    while held() is not None and time.monotonic() < end:
        time.sleep(0.01)
        gc.collect()
    assert held() is None
