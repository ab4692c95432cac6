"""A word has one meaning: no two classes of one name, no two files of one name in a room."""

import ast
from collections import defaultdict
from pathlib import Path

import attention_atlas

ROOT = Path(attention_atlas.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(file.relative_to(ROOT)))
    shared = {name: files for name, files in places.items() if len(files) > 1}
    assert shared == {}


def test_files_of_a_room_have_names_that_do_not_repeat_the_room() -> None:
    """wire/wire.py says nothing that wire/ does not."""
    repeated = [file for file in FILES if file.stem == file.parent.name]
    assert [str(file.relative_to(ROOT)) for file in repeated] == []
