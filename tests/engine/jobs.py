"""Jobs for the tests of engines."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attention_atlas.engine.held import held
from attention_atlas.engine.job import Job
from attention_atlas.names.errors import InputError
from attention_atlas.store.parts import Contents


def made(asked: Mapping[str, Any]) -> int:
    """Return the number that was asked for."""
    number: int = asked["number"]
    return number


def part(asked: Mapping[str, Any]) -> Contents:
    """Return a part with arrays of several types, an empty one, a table and facts."""
    number = asked["number"]
    arrays = {
        "wide": np.arange(12, dtype=np.float64).reshape(3, 4) + number,
        "half": np.full((2, number, 3), number, np.float16),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 4), np.int64),
        "one": np.array(7.5, np.float32),
    }
    table = pa.table({"token": [number, None], "text": ["été", "<b>"]})
    return Contents(arrays, {"tokens": table}, {"number": number, "list": [1.5, None]})


def two_parts(asked: Mapping[str, Any]) -> dict[str, Contents]:
    """Return two parts by name."""
    return {"contents": part(asked), "scores": Contents({"x": np.ones(2)})}


def where(asked: Mapping[str, Any]) -> list[int]:
    """Return this process, and how often it made what is held."""
    counted: list[int] = held(asked["held"], lambda: [0])
    counted[0] += 1
    return [os.getpid(), counted[0]]


def kill_once(asked: Mapping[str, Any]) -> int:
    """End this process, unless the file that tells of it is there; else return the number."""
    told = Path(asked["told"])
    if asked["number"] == asked["deadly"] and not told.exists():
        told.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return made(asked)


def kill_always(asked: Mapping[str, Any]) -> int:
    """End this process for the deadly number."""
    if asked["number"] == asked["deadly"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return made(asked)


def refuse(asked: Mapping[str, Any]) -> None:
    """Raise one of our errors."""
    raise InputError(f"number {asked['number']} is not wanted")


def fail(asked: Mapping[str, Any]) -> None:
    """Raise an error of somebody else."""
    raise ZeroDivisionError("by hand")


def jobs(work: str, count: int, large: bool = False, **more: Any) -> list[Job]:
    """Return jobs of one of the functions above."""
    return [
        Job(str(n), f"{__name__}:{work}", {"number": n, **more}, large=large) for n in range(count)
    ]
