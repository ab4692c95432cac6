"""How is a Ray cluster reached, or started on this machine?"""

import os
import re
import socket
from importlib import import_module
from typing import Any

from attention_atlas.names.errors import AtlasError, InputError

_ATTEMPTS = 3
_PATIENCE = 5.0  # seconds for the first answer of a cluster
_PORT = re.compile(r"(?:ray://)?\[?(?P<host>[^/\s]+?)\]?:(?P<port>\d{1,5})")


def connect(address: str | None) -> tuple[Any, bool]:
    """Connect to a cluster, unless this process is connected already.

    Without an address, that of RAY_ADDRESS or of a cluster that runs on this machine is taken;
    else Ray is started here and stops when this process ends. Returns the module ray, and whether
    it was started here.
    """
    try:
        ray = import_module("ray")
    except ImportError as problem:
        raise AtlasError(
            "the engine ray needs the library ray, which is not installed; "
            "run: pip install attention-atlas[ray]"
        ) from problem
    if ray.is_initialized():
        return ray, False
    address = address or os.environ.get("RAY_ADDRESS") or None
    if address is not None:
        _init(ray, address)
        return ray, False
    try:
        _init(ray, "auto")
    except AtlasError:
        _init(ray, "local")
        return ray, True
    return ray, False


def _init(ray: Any, address: str) -> None:
    if address not in ("auto", "local"):
        _refuse_unreachable(address)
    try:
        start(ray, address=address)
    except Exception as problem:  # some of Ray's are of no kind of their own
        raise AtlasError(_unreachable(address, _first_line(problem))) from problem


def start(ray: Any, **options: Any) -> None:
    """Start Ray or connect to it, quietly.

    It gives itself 30 seconds to start, which is too little on a busy machine.
    """
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    for attempt in range(_ATTEMPTS):
        try:
            ray.init(**quiet, **options)
            return
        except Exception as problem:
            if "timed out during startup" not in str(problem) or attempt == _ATTEMPTS - 1:
                raise
        ray.shutdown()


def _refuse_unreachable(address: str) -> None:
    """Raise an error at once where nothing answers; Ray itself would try for minutes."""
    match = _PORT.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        raise InputError(
            f"{address!r} is not the address of a Ray cluster; give auto, or HOST:PORT as "
            "`ray start --head` prints it"
        )
    try:
        socket.create_connection((match["host"], int(match["port"])), _PATIENCE).close()
    except OSError as problem:
        raise AtlasError(_unreachable(address, str(problem))) from problem


def _unreachable(address: str, reason: str) -> str:
    if address == "local":
        return f"Ray could not be started on this machine: {reason}"
    return (
        f"no Ray cluster answers at {address} ({reason}); start one with `ray start --head`, or "
        "leave the address out to use this machine alone"
    )


def _first_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0][:200]
