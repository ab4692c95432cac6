"""Do the arrows between folders never turn back?

DESIGN.md draws them: record writes an atlas; measure and layout read it; serve reads it all. Heavy
libraries stay where their work is.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import attention_atlas

ROOT = Path(attention_atlas.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# What a folder may import of ours besides itself and COMMON.
MAY_IMPORT = {
    "models": set[str](),
    "store": set[str](),
    "record": {"models", "store"},
    "measure": {"store"},
    "layout": {"store"},
    "engine": {"models", "store", "record", "measure", "layout"},
    "serve": {"store", "measure", "layout"},
}
# Only inside functions: a server may run without a model; atlas.layout(…) and atlas.measure(…)
# make what is missing.
LATE = {"serve": {"models", "record"}, "store": {"layout", "study"}}
COMMON = {"errors", "head", "picture", "progress"}  # single files that any folder may use
HOMES = {
    "torch": {"models", "record", "layout"},
    "transformers": {"models", "record"},
}


def folder(file: Path) -> str:
    """The folder a file is in, or its own name where it is in none."""
    first = file.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def nodes(node: ast.AST, late: bool) -> Iterator[ast.AST]:
    """All of the code below a node, or what of it runs at import."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue  # read by the type checker alone
        yield child
        if late or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from nodes(child, late)


def imported(file: Path, late: bool = True) -> Iterator[str]:
    """Every module that a file names in an import; `late` counts those inside functions too."""
    for node in nodes(ast.parse(file.read_text()), late):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports say where they come from in full"
            assert node.module is not None
            yield node.module
            if node.module == "attention_atlas":
                yield from (f"attention_atlas.{alias.name}" for alias in node.names)


def ours(file: Path, late: bool = True) -> set[str]:
    """The folders and single files of ours that a file imports."""
    parts = [name.split(".") for name in imported(file, late)]
    return {part[1] for part in parts if part[0] == "attention_atlas" and len(part) > 1}


@pytest.mark.parametrize("library", HOMES)
def test_heavy_libraries_are_imported_only_where_their_work_is(library: str) -> None:
    users = {
        folder(file)
        for file in FILES
        if library in {name.partition(".")[0] for name in imported(file)}
    }
    assert users <= HOMES[library]


@pytest.mark.parametrize(
    "file",
    [file for file in FILES if file.parent != ROOT],
    ids=lambda file: str(file.relative_to(ROOT)),
)
def test_arrows_never_turn_back(file: Path) -> None:
    here = folder(file)
    assert here in MAY_IMPORT, "a new folder needs its place in the order"
    allowed = MAY_IMPORT[here] | COMMON | {here}
    assert ours(file, late=False) <= allowed
    assert ours(file) <= allowed | LATE.get(here, set())


@pytest.mark.parametrize("name", sorted(COMMON))
def test_what_all_may_use_uses_nothing_else_of_ours(name: str) -> None:
    assert ours(ROOT / f"{name}.py") <= COMMON


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


def test_help_loads_nothing_heavy() -> None:
    code = """
import sys
from attention_atlas.cli import main
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
