"""What does a worker process of the local engine do? It reads jobs and writes their results."""

import json
import os
import pickle
import signal
import sys
from typing import IO, Any

from attention_atlas.engine.job import Job
from attention_atlas.names.errors import AtlasError


def serve(jobs: IO[bytes], answers: IO[bytes]) -> None:
    """Run each job; write its problem or its result to `answers`."""
    for line in jobs:
        problem, result = _outcome(Job(**json.loads(line)))
        pickle.dump((problem, result), answers, protocol=5)
        answers.flush()


def _outcome(job: Job) -> tuple[AtlasError | None, Any]:
    try:
        return None, job.run()
    except AtlasError as problem:
        return problem, None
    except Exception as problem:
        return AtlasError(f"{job.name} failed: {type(problem).__name__}: {problem}"), None


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller handles Ctrl-C and ends this process
    # Libraries print to stdout; their text must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
