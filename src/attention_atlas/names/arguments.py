"""Does a call give what its function takes?

`checked` compares each argument with the annotation of its parameter before the function runs, and
says in one sentence what was given and what is taken. Numbers and lists of NumPy, pandas and torch
count as numbers and lists. A parameter called `seed` must also be in range.
"""

import inspect
import operator
import os
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import FrameType, NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

from attention_atlas.names.errors import InputError
from attention_atlas.names.options import check_seed

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)
_LOOKED_AT = 100  # items of a list
_WORDS: dict[Any, str] = {
    int: "a whole number", float: "a number", str: "a text", bool: "True or False",
    NoneType: "None", Path: "a path", slice: "a slice", range: "a range",
}  # fmt: skip


def checked(function: Callable[_P, _R], *options: str) -> Callable[_P, _R]:
    """Return a function that checks its arguments first.

    options  "module:function" or "module:class" of ours that the other keywords are passed on to
    """
    signature = inspect.signature(function)

    @wraps(function)
    def run(*given: _P.args, **named: _P.kwargs) -> _R:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as problem:
            taken = ", ".join(name for name in signature.parameters if name != "self")
            raise InputError(f"{function.__name__}: {problem}; it takes {taken}") from None
        for name, value in bound.arguments.items():
            _check(function, options, signature.parameters[name], value)
        return function(*given, **named)

    return run


def checked_methods(options: Mapping[str, tuple[str, ...]]) -> Callable[[_C], _C]:
    """Return a decorator of classes that checks the arguments of all public methods."""

    def decorate(kind: _C) -> _C:
        for name in dir(kind):
            method = inspect.getattr_static(kind, name)
            if name.startswith("_"):
                continue
            if inspect.isfunction(method):
                setattr(kind, name, checked(method, *options.get(name, ())))
            elif isinstance(method, classmethod):
                setattr(kind, name, classmethod(checked(method.__func__)))
        return kind

    return decorate


def caller() -> FrameType:
    """Return the frame that called the function which asks, as if nothing checked it."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _check(
    function: Callable[..., Any], options: tuple[str, ...], about: inspect.Parameter, value: Any
) -> None:
    hint = _hints(function).get(about.name, Any)
    if about.kind is inspect.Parameter.VAR_KEYWORD:
        known = _option_hints(options)
        for name, given in value.items():
            if known and name not in known:
                raise InputError(
                    f"{function.__name__} has no option {name!r}; it has {', '.join(known)}"
                )
            _check_one(function.__name__, name, known.get(name, Any), given)
        return
    values = value if about.kind is inspect.Parameter.VAR_POSITIONAL else (value,)
    for each in values:
        _check_one(function.__name__, about.name, hint, each)


def _check_one(function: str, name: str, hint: Any, value: Any) -> None:
    if not fits(hint, value):
        raise InputError(f"{function}: {name} is {shown(value)}; give {words(hint)}")
    if name == "seed" and value is not None:
        check_seed(value)


def fits(hint: Any, value: Any) -> bool:
    """Tell whether a value is what an annotation says."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return any(fits(each, value) for each in arguments)
    if origin is typing.Literal:
        return isinstance(value, str | int) and value in arguments
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        return _is_list(value) and _fits_items(origin, arguments, value)
    kind = origin if isinstance(origin, type) else hint
    if kind in (NoneType, None):
        return value is None
    if kind is bool:
        return type(value).__name__ in ("bool", "bool_")
    if kind is int:
        return is_whole(value)
    if kind is float:
        return is_whole(value) or _is_number(value)
    if kind is Path:
        return isinstance(value, os.PathLike)
    if kind is Any or not isinstance(kind, type):
        return True
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol
        return True


def _fits_items(origin: type, arguments: tuple[Any, ...], value: Any) -> bool:
    if origin is tuple and Ellipsis not in arguments:
        items = list(value)
        return len(items) == len(arguments) and all(map(fits, arguments, items))
    inner = arguments[0] if arguments else Any
    return all(fits(inner, item) for item in islice(iter(value), _LOOKED_AT))


def _is_list(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping | set | frozenset):
        return False
    try:
        len(value)
    except TypeError:  # an array of no axis has a length that cannot be asked for
        return False
    return hasattr(value, "__getitem__")


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes) or type(value).__name__ in ("bool", "bool_"):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def several(given: Any, what: str) -> list[Any]:
    """Return the items of a list, whatever its kind; raise an InputError if it is none."""
    try:
        if isinstance(given, str | bytes | Mapping):
            raise TypeError
        return list(given)
    except TypeError:
        raise InputError(f"{what} is {shown(given)}; give a list") from None


def is_whole(value: Any) -> bool:
    """Tell whether a value is a whole number; True and False are none."""
    if type(value).__name__ in ("bool", "bool_"):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def shown(value: Any) -> str:
    """Describe a value in a few words, with its type."""
    kind = type(value).__name__
    if value is None:
        return "None"
    if isinstance(value, str | int | float | list | tuple | dict):
        text = ascii(value)
        return f"{text if len(text) <= 40 else text[:39] + '…'} ({kind})"
    return f"a {kind}"


def words(hint: Any) -> str:
    """Say in words what an annotation takes."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return " or ".join(dict.fromkeys(words(each) for each in arguments))
    if origin is typing.Literal:
        return " or ".join(repr(each) for each in arguments)
    if origin is tuple and Ellipsis not in arguments:
        return f"{len(arguments)} of these: {', '.join(words(each) for each in arguments)}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"a list, each {words(arguments[0])}" if arguments else "a list"
    return _WORDS.get(hint) or f"a {getattr(origin or hint, '__name__', str(hint))}"


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function; what only a type checker imports counts as Any."""
    try:
        return inspect.get_annotations(function, eval_str=True)
    except NameError:
        plain = inspect.get_annotations(function)
        return {name: Any if isinstance(hint, str) else hint for name, hint in plain.items()}


@cache
def _option_hints(options: tuple[str, ...]) -> dict[str, Any]:
    """Return the keywords that functions and classes of ours take, with their annotations."""
    known: dict[str, Any] = {}
    for place in options:
        module, _, name = place.partition(":")
        target = getattr(import_module(f"attention_atlas.{module}"), name)
        parameters = inspect.signature(target).parameters.values()
        hints = _hints(target) if not isinstance(target, type) else typing.get_type_hints(target)
        own = (each.name for each in parameters if each.kind is not each.VAR_KEYWORD)
        known |= {name: hints.get(name, Any) for name in own if name != "self"}
    return known
