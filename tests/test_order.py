"""Do the arrows between folders never turn back?

Record writes an atlas; measure and layout read it and add to it; the page reads it all. Heavy
libraries stay where their work is.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import attention_atlas

ROOT = Path(attention_atlas.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# The rooms in their order: a room imports only itself and rooms that stand before it.
ORDER = (
    "names", "store", "engine", "images", "models", "record.watch", "record.places",
    "record.prove", "edits",
    "record.write", "measure", "lab", "layout", "studies", "page.wire", "page.answers", "page.live",
    "page.hosts", "page.agents", "atlas", "ways", "ray", "cli", "__main__", "__init__",
)  # fmt: skip
# Measures are NumPy's; on a GPU they are torch's, which is then imported inside a function.
HOMES = {
    "torch": {"models", "record", "edits", "lab", "layout", "measure"},
    "transformers": {"models", "record", "edits", "lab"},
    "ray": {"engine"},  # by its name, when a cluster is used
}


def room(module: str) -> str:
    """The room that a module of ours, named without the package, stands in."""
    parts = module.split(".")
    return next((name for name in (".".join(parts[:2]), parts[0]) if name in ORDER), parts[0])


def name_of(file: Path) -> str:
    """The module name of a file, without the package; a package's own file counts as inside."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def folder(file: Path) -> str:
    """The first folder below the package that a file is in."""
    return name_of(file).partition(".")[0]


def nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All of the code below a node, but for what only the type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from nodes(child)


@cache
def imported(file: Path) -> frozenset[str]:
    """Every module that a file names in an import, inside functions too."""
    names = set[str]()
    for node in nodes(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports say where they come from in full"
            assert node.module is not None
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)


def ours(file: Path) -> set[str]:
    """The rooms of ours that a file imports."""
    names = {name.removeprefix("attention_atlas.") for name in imported(file)
             if name.startswith("attention_atlas.")}  # fmt: skip
    return {room(name) for name in names if not _is_package(name)}


def _is_package(name: str) -> bool:
    """Whether a name is that of a folder of rooms, of which nothing but a module is imported."""
    return (ROOT / name.replace(".", "/")).is_dir() and room(name) not in ORDER


@pytest.mark.parametrize("library", HOMES)
def test_heavy_libraries_are_imported_only_where_their_work_is(library: str) -> None:
    users = {
        folder(file)
        for file in FILES
        if library in {name.partition(".")[0] for name in imported(file)}
    }
    assert users <= HOMES[library]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_arrows_never_turn_back(file: Path) -> None:
    name = name_of(file)
    here = room(name)
    if name.endswith("__init__") and here not in ORDER:
        assert not ours(file), "record and page only hold rooms"
        return
    assert here in ORDER, "a new room needs its place in the order"
    assert ours(file) <= set(ORDER[: ORDER.index(here) + 1])


def loaded_by(code: str) -> set[str]:
    """The heavy libraries that are loaded once `code` has run in a process of its own."""
    report = f"import sys; print(sorted({set(HOMES)} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    found: list[str] = ast.literal_eval(run.stdout.splitlines()[-1])
    return set(found)


def test_the_probe_of_loaded_libraries_sees_them() -> None:
    assert loaded_by("import torch") == {"torch"}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import attention_atlas") == set()


def test_a_server_of_agents_starts_without_anything_heavy() -> None:
    assert loaded_by("import attention_atlas.page.agents.server") == set()


def test_help_loads_nothing_heavy() -> None:
    code = """
import sys
from attention_atlas.cli.app import main
sys.argv = ["attention-atlas", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
"""
    assert loaded_by(code) == set()


def test_opening_an_atlas_needs_nothing_heavy(tmp_path: Path) -> None:
    import torch
    import transformers

    settings = {"vocab_size": 20, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 8}
    model = transformers.GPT2Model(transformers.GPT2Config(**settings)).eval()
    ids = torch.tensor([[3, 1, 4, 1]])
    path = tmp_path / "x.atlas"
    attention_atlas.capture(model, [{"input_ids": ids}], path=path, device="cpu", progress=False)
    code = f"""
import attention_atlas as aa
atlas = aa.open({str(path)!r})
assert atlas.weights(input=0, head="L0H1").shape == (4, 4)
assert len(atlas.heads()) == 2 and len(atlas.tokens(input=0)) == 4
"""
    assert loaded_by(code) == set()
