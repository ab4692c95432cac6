"""What machine was this measured on, and when?"""

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path


def about() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return (
        f"{today}, {os.cpu_count()} cores ({_processor()}), {memory:.0f} GiB, "
        f"Python {platform.python_version()}, torch {version('torch')}, "
        f"transformers {version('transformers')}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.machine()
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.machine()
