"""A deed's JSON, checked field by field, becomes what `wire` declares."""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Union, get_args, get_origin, get_type_hints

from attention_atlas.names.errors import PickError
from attention_atlas.page.live.workshop import Workshop
from attention_atlas.page.wire import wire

DEEDS: dict[str, Callable[[Workshop, Any], Any]] = {
    "compute": Workshop.compute,
    "cancel": Workshop.cancel,
    "add": Workshop.add,
}


def do(workshop: Workshop | None, word: str, body: object) -> Any:
    """The answer of a deed; a PickError says what is wrong with what was sent."""
    if word not in DEEDS:
        raise PickError(f"nothing to do is called {word[:40]!r}; there is {', '.join(DEEDS)}")
    if workshop is None:
        raise PickError("this page shows attention as it was given; nothing can be done with it")
    return DEEDS[word](workshop, _read(wire.DEEDS[word][0], word, body))


def _read(kind: type, word: str, body: object) -> Any:
    if not isinstance(body, Mapping):
        raise PickError(f"{word} wants a JSON object; see {kind.__name__} in wire.py")
    hints = get_type_hints(kind)
    given: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in body:
            if field.default is MISSING:
                raise PickError(f"{word} lacks {field.name!r}")
            continue
        value = body[field.name]
        allowed = _kinds(hints[field.name])
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise PickError(f"{field.name!r} of {word} is of the wrong kind")
        given[field.name] = value
    return kind(**given)


def _kinds(hint: Any) -> tuple[type, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(one for part in get_args(hint) for one in _kinds(part))
    return (hint,)
