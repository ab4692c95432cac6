"""A server that is used for long does not grow; `benchmarks/serve_load.py soak` is the long run."""

import gc
import random
from pathlib import Path

import pytest

import attention_atlas as aa
from attention_atlas.page.answers import edited
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.model import LiveModel


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
