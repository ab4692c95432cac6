"""How is JSON from a page checked? By pydantic, as the schema declares it."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from attention_atlas.names.errors import PickError

T = TypeVar("T")


def read(kind: type[T], what: str, body: object) -> T:
    """Read JSON values into a dataclass of the schema; a PickError names the first wrong value.

    Nothing is converted: a number is not read as a text, nor true as a number.
    """
    known = [field.name for field in fields(cast(Any, kind))]
    unknown = sorted(set(map(str, body)) - set(known)) if isinstance(body, Mapping) else []
    if unknown:
        names = ", ".join(known) or "nothing"
        raise PickError(f"nothing of {what} is called {unknown[0][:40]!r}; there is {names}")
    try:
        value: T = TypeAdapter(kind).validate_json(json.dumps(body, allow_nan=False), strict=True)
    except (ValidationError, ValueError, TypeError, RecursionError) as problem:
        raise PickError(_sentence(what, problem)) from None
    return value


def plain(value: Any) -> Any:
    """Return a dataclass of the schema as JSON values."""
    return TypeAdapter(type(value)).dump_python(value, mode="json")


def _sentence(what: str, problem: Exception) -> str:
    if not isinstance(problem, ValidationError):
        return f"{what} cannot be read as JSON: {problem}"
    first = problem.errors()[0]
    place = ".".join(map(str, first["loc"]))
    if not place:
        return f"{what} must be a JSON object"
    if first["type"] == "missing":
        return f"{what} lacks {place!r}"
    said = first["msg"].removeprefix("Input ")
    return f"{place!r} of {what} {said}"
