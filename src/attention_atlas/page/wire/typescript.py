"""Which TypeScript does the schema come to?

`python -m attention_atlas.page.wire.typescript web/src/source/wire.ts` writes it; a test fails when
the file is stale.
"""

import sys
import types
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from attention_atlas.page.wire import wire

_OPENING = """\
// Generated from src/attention_atlas/page/wire/wire.py; do not edit. Write it anew with:
//   python -m attention_atlas.page.wire.typescript web/src/source/wire.ts

/** Numbers and their axes, row by row. */
export interface Grid<T> {
  data: T;
  shape: number[];
}
"""
_PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
_BUFFERS = {
    "f4": "Float32Array",
    "i4": "Int32Array",
    "i2": "Int16Array",
    "u4": "Uint32Array",
    "u2": "Uint16Array",
    "u1": "Uint8Array",
}


def typescript() -> str:
    """The whole file."""
    interfaces = [_interface(one) for one in vars(wire).values() if _crosses(one)]
    answers = "\n".join(f"  {path}: {kind.__name__};" for path, kind in wire.ANSWERS.items())
    table = (
        "/** First word of a path → what answers it. */\n"
        f"export interface Answers {{\n{answers}\n}}\n"
    )
    deeds = "\n".join(
        f"  {word}: {{ sent: {sent.__name__}; answer: {answer.__name__} }};"
        for word, (sent, answer) in wire.DEEDS.items()
    )
    posted = (
        "/** Word of a deed → what is sent as JSON and what answers it. */\n"
        f"export interface Deeds {{\n{deeds}\n}}\n"
    )
    rows = "\n".join(f"  {short}: {name}," for short, name in _BUFFERS.items())
    arrays = (
        "/** How a header names the type of a buffer. */\n"
        f"export const ARRAYS = {{\n{rows}\n}} as const;\n"
    )
    return "\n".join([_OPENING, *interfaces, table, posted, arrays])


def _crosses(one: Any) -> bool:
    return isinstance(one, type) and is_dataclass(one) and one is not wire.Buffer


def _interface(kind: Any) -> str:
    hints = get_type_hints(kind, include_extras=True)
    lines = [f"  {field.name}: {_type(hints[field.name])};" for field in fields(kind)]
    doc = (kind.__doc__ or "").strip()
    comment = "" if doc.startswith(f"{kind.__name__}(") else f"{_comment(doc)}\n"
    inside = "\n".join(["{", *lines, "}"]) if lines else "{}"
    return f"{comment}export interface {kind.__name__} {inside}\n"


def _comment(doc: str) -> str:
    lines = [line.strip() for line in doc.splitlines()]
    if len(lines) == 1:
        return f"/** {lines[0]} */"
    return "\n".join(["/**", *(f" * {line}".rstrip() for line in lines), " */"])


def _type(hint: Any) -> str:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return " | ".join(f"Grid<{_BUFFERS[short]}>" for short in inner[1].types)
    if origin is Literal:
        return " | ".join(f'"{word}"' for word in inner)
    if origin in (Union, types.UnionType):
        return " | ".join(_type(one) for one in inner)
    if origin is dict:
        return f"Record<{_type(inner[0])}, {_type(inner[1])}>"
    if inner:  # a sequence
        one = _type(inner[0])
        return f"({one})[]" if " | " in one else f"{one}[]"
    name: str = hint.__name__
    return name


def main(arguments: list[str]) -> int:
    """Write the file, or with --check say whether it is stale."""
    path = Path(arguments[-1])
    if "--check" not in arguments:
        path.write_text(typescript(), encoding="utf-8")
        return 0
    if path.read_text(encoding="utf-8") == typescript():
        return 0
    print(
        f"{path} is stale; run: python -m attention_atlas.page.wire.typescript {path}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
