"""Which engines are there?"""

from collections.abc import Callable

from attention_atlas.engine.cluster import Cluster
from attention_atlas.engine.job import Engine
from attention_atlas.engine.local import Local
from attention_atlas.engine.options import EngineOptions
from attention_atlas.names.errors import InputError
from attention_atlas.store.cores import cores

_CORES_PER_WRITER = 4  # a thread that writes checks what it writes; the model needs cores too
_MOST_WRITERS = 3


def _local(options: EngineOptions) -> Local:
    for name, value in (("address", options.address), ("shared", options.shared)):
        if value is not None:
            raise InputError(f"{name} {value} is for the engine ray; add --engine ray")
    return Local(options.workers, max(1, min(_MOST_WRITERS, cores() // _CORES_PER_WRITER)))


def _ray(options: EngineOptions) -> Cluster:
    return Cluster(options.address, options.workers, options.shared)


ENGINES: dict[str, Callable[[EngineOptions], Engine]] = {"local": _local, "ray": _ray}


def find_engine(asked: "str | EngineOptions | Engine") -> Engine:
    """Return an engine by its name or options, or as it was given.

    Its `done` may run in several threads at once.
    """
    options = EngineOptions(asked) if isinstance(asked, str) else asked
    if isinstance(options, Engine) and not isinstance(options, type):
        return options
    if not isinstance(options, EngineOptions):
        raise InputError(
            f"the engine is a {type(asked).__name__}; give {' or '.join(ENGINES)}, or an engine "
            "such as aa.ray.Cluster(workers=8)"
        )
    if options.engine not in ENGINES:
        raise InputError(
            f"no engine is named {options.engine!r}; the engines are: {', '.join(ENGINES)}"
        )
    return ENGINES[options.engine](options)
