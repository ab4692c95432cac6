"""Is the memory of freed arrays used again, instead of being cleared by the system each time?"""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
import numpy as np
from attention_atlas.store.freed_arrays import keep_freed_arrays

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if {keep}:
    keep_freed_arrays()
def several():
    return [np.ones(2**20) for _ in range(5)]  # 8 MiB each

several()
before = faults()
for _ in range(20):
    several()
print(faults() - before)
"""


def count_faults(keep: bool) -> int:
    command = [sys.executable, "-c", SCRIPT.format(keep=keep)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_arrays_made_again_and_again_take_hardly_any_new_pages() -> None:
    assert count_faults(keep=True) < count_faults(keep=False) / 10
