"""How does an options object become options of a command?

`spread` replaces a parameter whose type is a frozen options class by one option a field, and passes
the object to the command.
"""

import inspect
from collections.abc import Callable
from dataclasses import Field, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from attention_atlas.names.options import declared

LIMITS = ("min", "max")


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Make the function that typer reads, with a parameter a field of each options object."""
    hints = get_type_hints(command, include_extras=True)
    objects: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in objects:
            parameters += _as_parameters(objects[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

    def run(**given: Any) -> None:
        for name, kind in objects.items():
            values = {field.name: _frozen(given.pop(field.name)) for field in declared(kind)}
            given[name] = kind(**values)
        command(**given)

    ordered = sorted(
        parameters, key=lambda parameter: parameter.default is not inspect.Parameter.empty
    )
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in ordered}
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    return run


def _as_parameters(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=list(field.default) if isinstance(field.default, tuple) else field.default,
            annotation=Annotated[field.metadata.get("type", hints[field.name]), _option(field)],
        )
        for field in declared(kind)
    ]


def _option(field: "Field[Any]") -> Any:
    limits = {name: field.metadata[name] for name in LIMITS if name in field.metadata}
    # A switch that is off by default has no --no-… beside it.
    names = [f"--{field.name.replace('_', '-')}"] if field.default is False else []
    return typer.Option(*names, help=field.metadata["help"], **limits)


def _frozen(value: Any) -> Any:
    """Turn a list of choices, as typer reads them, into a tuple of words."""
    return tuple(map(str, value)) if isinstance(value, list) else value
