"""A server that is stopped while edits are being checked ends quietly."""

import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import sys, time
import attention_atlas as aa
from attention_atlas.page.live.edit_receipt import ReceiptRun
from attention_atlas.page.live.model import LiveModel

run = ReceiptRun(aa.open(sys.argv[1]), LiveModel("builtin:gpt"))
while not run.proofs().parts:
    time.sleep(0.01)
assert not run.proofs().done
"""


@pytest.mark.full
def test_a_process_ends_quietly_while_edits_are_being_checked(gpt: Any) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(gpt.path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
