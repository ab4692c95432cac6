"""What does a job need that may be missing on the machine where it runs?"""

import socket
from pathlib import Path

from attention_atlas.names.errors import StoreError


def reach(path: str) -> Path:
    """Return a path that the caller has; raises a StoreError if this machine lacks it."""
    found = Path(path)
    if not found.exists():
        raise StoreError(
            f"{path} is not on {socket.gethostname()}, where a worker needs it; put it into a "
            "folder that all machines reach under one path, or run with the engine local"
        )
    return found
