"""How does JSON of unknown origin become a frozen dataclass, or one sentence that says why not?

The annotations of the class are the schema: a missing or unknown key, a text in place of a number,
a number of thirty digits are refused with the path of what is wrong, as in `towers[0].depth`.
"""

import math
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from attention_atlas.names.token_text import can_be_written

LARGEST = 2**53  # JSON numbers beyond this are not exact in every reader
_DEEPEST = 50
_WORDS = ("nan", "inf", "-inf")  # JSON lacks these numbers


def decode(kind: Any, raw: Any, where: str = "") -> Any:
    """Return JSON as a value of a type; raise a ValueError that says where it does not fit."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return _plain(raw, where)
    if origin in (UnionType, Union):
        if raw is None and NoneType in arguments:
            return None
        (inner,) = (each for each in arguments if each is not NoneType)
        return decode(inner, raw, where)
    if origin is tuple:
        _need(isinstance(raw, list), where, "a list", raw)
        return tuple(decode(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(raw))
    if origin is dict:
        _need(isinstance(raw, dict), where, "an object", raw)
        return {
            decode(str, key, where): decode(arguments[1], value, f"{where}.{key}")
            for key, value in raw.items()
        }
    if is_dataclass(kind):
        return _object(kind, raw, where)
    return _simple(kind, raw, where)


def _object(kind: Any, raw: Any, where: str) -> Any:
    _need(isinstance(raw, dict), where or kind.__name__.lower(), "an object", raw)
    values, hints = {}, _hints(kind)
    prefix = f"{where}." if where else ""
    for entry in fields(kind):
        if entry.name in raw:
            values[entry.name] = decode(hints[entry.name], raw[entry.name], prefix + entry.name)
        elif entry.default is MISSING and entry.default_factory is MISSING:
            raise ValueError(f"{prefix}{entry.name} is missing")
    unknown = [str(name) for name in raw if name not in hints]
    if unknown:
        raise ValueError(f"{prefix}{unknown[0][:40]} is not known")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _simple(kind: Any, raw: Any, where: str) -> Any:
    if kind is float:
        if isinstance(raw, str) and raw in _WORDS:
            return float(raw)
        _need(type(raw) in (int, float) and abs(raw) < 1e300, where, "a number", raw)
        return float(raw)
    if kind is int:
        _need(type(raw) is int and abs(raw) < LARGEST, where, "a whole number", raw)
    elif kind is str:
        _need(isinstance(raw, str) and can_be_written(raw), where, "a text", raw)
    else:
        _need(type(raw) is kind, where, f"a {kind.__name__}", raw)
    return raw


def _plain(raw: Any, where: str, depth: int = 0) -> Any:
    """Check JSON of any shape: no text that cannot be written, no endless nesting or number."""
    _need(depth < _DEEPEST, where, "nested less deeply", "…")
    if isinstance(raw, dict):
        for key, value in raw.items():
            _plain(key, where, depth + 1)
            _plain(value, f"{where}.{key}", depth + 1)
    elif isinstance(raw, list):
        for item in raw:
            _plain(item, where, depth + 1)
    elif isinstance(raw, str):
        _need(can_be_written(raw), where, "a text", raw)
    elif isinstance(raw, int | float):
        _need(math.isfinite(raw) and abs(raw) < 2**64, where, "a number", raw)
    return raw


def _need(right: bool, where: str, what: str, raw: Any) -> None:
    if not right:
        raise ValueError(f"{where} is {ascii(raw)[:40]}, not {what}")
