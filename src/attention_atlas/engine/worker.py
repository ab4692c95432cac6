"""What does a worker process of the local engine do? It reads jobs and writes their results."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import IO, Any

from attention_atlas.engine.job import Job
from attention_atlas.engine.parcel import Parcel, pack, pack_problem, send
from attention_atlas.names.errors import AtlasError
from attention_atlas.store.parts import Contents, leave_part


def serve(jobs: IO[bytes], answers: IO[bytes]) -> None:
    """Run each job; write its problem or its result to `answers`."""
    for line in jobs:
        send(outcome(Job(**json.loads(line))), answers)


def outcome(job: Job, shared: str | None = None) -> Parcel:
    """Run a job in this process; returns its result or its problem, packed.

    shared  a folder for the arrays and tables of large results
    """
    try:
        result = job.run()
        return pack(_left(result, shared) if shared is not None and job.large else result)
    except AtlasError as problem:
        return pack_problem(problem)
    except Exception as problem:
        return pack_problem(AtlasError(f"{job.name} failed: {type(problem).__name__}: {problem}"))


def _left(result: Any, shared: str) -> Any:
    """Leave the parts of a result in a shared folder; returns what tells where they are."""
    if isinstance(result, Contents):
        return leave_part(shared, result)
    if isinstance(result, Mapping):
        return {name: _left(part, shared) for name, part in result.items()}
    return result


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller handles Ctrl-C and ends this process
    # Libraries print to stdout; their text must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
