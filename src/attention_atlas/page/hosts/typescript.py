"""How is the TypeScript of the schema written?

    python -m attention_atlas.page.hosts.typescript web/src/source/wire.ts

writes the file: the types of all packets and actions, and the names, choices, defaults and limits
that Python and the page share. A test fails when the file is stale.
"""

import argparse
import json
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from attention_atlas.page.answers.packet import Packet
from attention_atlas.page.answers.packets import PACKETS
from attention_atlas.page.live.actions import ACTIONS
from attention_atlas.page.wire import constants
from attention_atlas.page.wire.packing import Failure
from attention_atlas.page.wire.picks import Picks

COMMAND = "python -m attention_atlas.page.hosts.typescript"
_OPENING = f"""\
// Generated from src/attention_atlas/page/wire/ and its tables; do not edit. Write it again with:
//   {COMMAND} web/src/source/wire.ts

/** Numbers and their axes, row by row. */
export interface Grid<T> {{
  data: T;
  shape: number[];
}}
"""
_PLAIN: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Any: "unknown",
}
_BUFFERS = {
    "f4": "Float32Array",
    "i4": "Int32Array",
    "i2": "Int16Array",
    "u4": "Uint32Array",
    "u2": "Uint16Array",
    "u1": "Uint8Array",
}


def typescript(packets: Mapping[str, Packet] = PACKETS) -> str:
    """Return the whole file for a table of packets."""
    sent = [kind for action in ACTIONS.values() for kind in (action.sent, action.answer)]
    seen: dict[Any, None] = {}
    for kind in [Failure, *(row.type for row in packets.values()), *sent, Picks]:
        seen.update(dict.fromkeys(_needed(kind)))
    answers = {word: row.type.__name__ for word, row in packets.items()}
    actions = {
        name: f"{{ sent: {action.sent.__name__}; answer: {action.answer.__name__} }}"
        for name, action in ACTIONS.items()
    }
    start = _written(asdict(Picks()))
    missing = {word: row.missing for word, row in packets.items()}
    arrays = "".join(f"  {short}: {name},\n" for short, name in _BUFFERS.items())
    return "\n".join(
        [
            _OPENING,
            *(_interface(kind) for kind in seen),
            _table("Answers", "First word of a path → what answers it.", answers),
            _table("Actions", "Name of an action → what is sent and what answers it.", actions),
            _constant(
                "MISSING",
                missing,
                "First word of a path → what a saved page lacks.",
            ),
            _constant("CHOICES", _choices(), "Picks with a fixed list of words."),
            f"/** The default picks. */\nexport const START: Picks = {start};\n",
            *(_constant(name, value) for name, value in _shared()),
            f"/** How a header names the type of a buffer. */\n"
            f"export const ARRAYS = {{\n{arrays}}} as const;\n",
        ]
    )


def _needed(kind: Any) -> Iterator[Any]:
    """Yield a dataclass and those in its fields, in the order in which they must be declared."""
    if is_dataclass(kind):
        for hint in get_type_hints(kind).values():
            yield from _needed(hint)
        yield kind
    for inner in get_args(kind):
        yield from _needed(inner)


def _shared() -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in vars(constants).items() if name.isupper())


def _choices() -> dict[str, tuple[str, ...]]:
    """Return the words of each pick that has a fixed list: pick → words."""
    hints = get_type_hints(Picks)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def _table(name: str, doc: str, rows: Mapping[str, str]) -> str:
    lines = "".join(f"  {word}: {kind};\n" for word, kind in rows.items())
    return f"/** {doc} */\nexport interface {name} {{\n{lines}}}\n"


def _constant(name: str, value: Any, doc: str = "") -> str:
    comment = f"/** {doc} */\n" if doc else ""
    return f"{comment}export const {name} = {_written(value)} as const;\n"


def _written(value: Any) -> str:
    """Return a value as TypeScript; an object has one line per field."""
    if not isinstance(value, Mapping) or not value:
        return json.dumps(value, ensure_ascii=False)
    lines = "".join(f"  {json.dumps(name)}: {_written(item)},\n" for name, item in value.items())
    return f"{{\n{lines}}}"


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
        return " | ".join(_type(part) for part in inner)
    if origin is dict:
        return f"Record<{_type(inner[0])}, {_type(inner[1])}>"
    if inner:  # a sequence
        item = _type(inner[0])
        return f"({item})[]" if " | " in item else f"{item}[]"
    name: str = hint.__name__
    return name


def main(arguments: list[str] | None = None) -> int:
    """Write the file, or with --check say whether it is stale; return the exit status."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write the TypeScript of the page.")
    parser.add_argument("path", type=Path, help="the file, as web/src/source/wire.ts")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if it is stale")
    asked = parser.parse_args(arguments)
    if not asked.check:
        asked.path.write_text(typescript(), encoding="utf-8")
        return 0
    if asked.path.is_file() and asked.path.read_text(encoding="utf-8") == typescript():
        return 0
    print(f"{asked.path} is stale; run: {COMMAND} {asked.path}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
