"""What can a person choose about where work runs?"""

from dataclasses import dataclass

from attention_atlas.names.options import option


@dataclass(frozen=True)
class EngineOptions:
    """Which engine runs the jobs, and with what."""

    engine: str = option("local", "local, or ray: workers on the machines of a Ray cluster.")
    address: str | None = option(
        None, "Ray: the cluster, as auto or HOST:PORT; else a new one on this machine."
    )
    workers: int | None = option(None, "How many processes work at once.", min=1)
    shared: str | None = option(
        None,
        "Ray: a folder or URL (s3://…) that all machines reach. Workers leave vectors there "
        "instead of sending them.",
    )
