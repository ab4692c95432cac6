"""Which engines are there?"""

from collections.abc import Callable

from attention_atlas.engine.job import Engine
from attention_atlas.engine.local import Local
from attention_atlas.names.errors import InputError
from attention_atlas.store.cores import cores

_CORES_PER_WRITER = 4  # a thread that writes checks what it writes; the model needs cores too
_MOST_WRITERS = 3


def _local() -> Local:
    return Local(writers=max(1, min(_MOST_WRITERS, cores() // _CORES_PER_WRITER)))


ENGINES: dict[str, Callable[[], Engine]] = {"local": _local}


def find_engine(name: str) -> Engine:
    """Return a new engine, by its name; its `done` may run in several threads at once."""
    if name not in ENGINES:
        raise InputError(f"no engine is named {name!r}; the engines are: {', '.join(ENGINES)}")
    return ENGINES[name]()
