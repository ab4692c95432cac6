"""How is an option declared once, for Python and for the command line?

A frozen dataclass holds options that belong together. A field made by `option` becomes an option of
every command that takes the object; a plain field can be set from Python only.
"""

from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any

from attention_atlas.names.errors import InputError

MOST_SEED = 2**32 - 1  # what every source of random numbers takes


def option(default: Any, help: str, **details: Any) -> Any:
    """Make a field with its help; `details` are `min`, `max` or the `type` a command line reads."""
    return field(default=default, metadata={"help": help, **details})


def check_seed(seed: int) -> None:
    """Raise an InputError if random numbers cannot start from a seed."""
    if not 0 <= seed <= MOST_SEED:
        raise InputError(f"the seed is {seed}; give a whole number from 0 to {MOST_SEED}")


def declared(kind: Any) -> list["Field[Any]"]:
    """Get the fields of an options class that a command line offers."""
    return [entry for entry in fields(kind) if "help" in entry.metadata]


def keywords(options: Any) -> Mapping[str, Any]:
    """Get an options object as keyword arguments."""
    return {entry.name: getattr(options, entry.name) for entry in fields(options)}
