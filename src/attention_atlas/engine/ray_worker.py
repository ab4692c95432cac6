"""What does a worker of a Ray cluster do? It runs one job after the other and keeps its model."""

import json
import socket
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from attention_atlas.engine.job import Job
from attention_atlas.engine.parcel import Bytes, Parcel, pack_problem
from attention_atlas.engine.worker import outcome
from attention_atlas.names.errors import AtlasError

_LIBRARIES = ("attention-atlas", "torch", "transformers", "numpy")


class RayWorker:
    """An actor: a process on some machine of the cluster."""

    def __init__(self, versions: Mapping[str, str | None]):
        self.different = {
            name: here for name, here in library_versions().items() if here != versions.get(name)
        }
        self.wanted = versions

    def run(self, text: str, shared: str | None) -> tuple[str, list[Bytes]]:
        """Run a job, given as JSON; returns the header and the buffers of its parcel."""
        parcel = self._refusal() or outcome(Job(**json.loads(text)), shared)
        return parcel.header, list(parcel.buffers)

    def _refusal(self) -> Parcel | None:
        """Refuse to work with other versions than the caller's: results would differ."""
        if not self.different:
            return None
        told = ", ".join(
            f"{name} {here} instead of {self.wanted.get(name)}"
            for name, here in self.different.items()
        )
        return pack_problem(
            AtlasError(
                f"{socket.gethostname()} has {told}; install the same versions on all machines"
            )
        )


def library_versions() -> dict[str, str | None]:
    """Return the versions on which results depend, without the build (+cpu, +cu130)."""
    return {name: _version(name) for name in _LIBRARIES}


def _version(name: str) -> str | None:
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return None
