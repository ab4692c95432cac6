"""Which engines are there?"""

from collections.abc import Callable

from attention_atlas.engine.job import Engine
from attention_atlas.engine.local import Local
from attention_atlas.names.errors import InputError

ENGINES: dict[str, Callable[[], Engine]] = {"local": Local}


def find_engine(name: str) -> Engine:
    """Return a new engine, by its name."""
    if name not in ENGINES:
        raise InputError(f"no engine is named {name!r}; the engines are: {', '.join(ENGINES)}")
    return ENGINES[name]()
