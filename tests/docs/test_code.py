"""Every line of code in README and the documents does what it says.

Blocks say their language; those for Python and for a shell are run in their order, a document after
the other, in a folder with all that they name (`desk.py`). What is not run is listed in `follow.py`
with its reason.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

import attention_atlas as aa
from attention_atlas.cli.app import app
from tests.docs.blocks import blocks, commands, documents, inline
from tests.docs.desk import furnish
from tests.docs.follow import NOT_RUN, PYTHON_NOT_RUN, run_command, run_python, run_shell
from tests.made_once import MadeOnce

RUN = ("python", "bash")
SHOWN = (
    "text",
    "json",
    "ts",
    "svelte",
    "toml",
    "sql",
)  # to read; ts and svelte have tests of theirs
CODED = [name for name in documents() if any(block.language in RUN for block in blocks(name))]
EXITS = {"docs/tests.md": (0, 1, 3)}  # a test that fails or is undecided is an answer


@pytest.mark.parametrize("document", documents())
def test_every_block_says_its_language(document: str) -> None:
    unknown = [str(block) for block in blocks(document) if block.language not in (*RUN, *SHOWN)]
    assert unknown == [], f"write one of {', '.join((*RUN, *SHOWN))} after ```"


def test_every_reason_for_not_running_is_still_needed() -> None:
    every = [block for name in documents() for block in blocks(name)]
    shell = [words for block in every if block.language == "bash" for words in commands(block.code)]
    needed = {word for word in NOT_RUN if any(word in words for words in shell)}
    spare = {"uvx", "uv", "python"}
    assert needed | spare == set(NOT_RUN)
    python = "\n".join(block.code for block in every if block.language == "python")
    assert [text for text in PYTHON_NOT_RUN if text not in python] == []


@pytest.fixture
def desk(made_once: MadeOnce, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = made_once("desk", furnish)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


@pytest.mark.full
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("document", CODED)
def test_every_line_runs(document: str, desk: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(document):
        if block.language == "python" and not any(text in block.code for text in PYTHON_NOT_RUN):
            run_python(block, names)
        elif block.language == "bash":
            run_shell(block, EXITS.get(document, (0,)))


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_every_answer_of_the_readme_runs(desk: Path) -> None:
    """The table of questions has one line of code or more for each: those run, too."""
    from attention_atlas.models.load import load

    gpt = load("builtin:gpt")
    text = "He saw the lady near the church and he saw the lady. He saw the"
    pair = {"clean": text, "corrupt": text.replace("lady", "horse"), "answer": " lady"}
    names: dict[str, Any] = {
        "aa": aa, "atlas": aa.open("x.atlas"), "model": gpt, "text": text,
        "texts": [text, "The king sleeps."], "pairs": [{**pair, "wrong": " horse"}],
        "a": aa.open("a.atlas"), "b": aa.open("b.atlas"),
    }  # fmt: skip
    names["weights"] = names["atlas"].layer_weights(0, 3)
    count = 0
    for code in inline("README.md"):
        if code.startswith("attention-atlas "):
            assert run_command(commands(code)[0]) == 0, code
        elif re.match(r"(aa|atlas|with aa)\.|from attention_atlas", code):
            exec(code, names)
        else:
            continue
        count += 1
    assert count >= 25


OPTIONS = {
    command.name: {option for each in command.params for option in each.opts}
    for command in typer.main.get_group(app).commands.values()
}


@pytest.mark.parametrize("document", documents())
def test_names_and_options_between_words_exist(document: str) -> None:
    for code in inline(document):
        for name in re.findall(r"\baa\.(\w+)", code):
            assert name in aa.__all__, f"{document}: {code}"
        for name in re.findall(r"\batlas\.(\w+)\(", code):
            assert hasattr(aa.Atlas, name), f"{document}: {code}"
        if found := re.match(r"attention-atlas ([a-z]+)", code):
            assert found[1] in OPTIONS, f"{document}: {code}"
            options = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", code))
            assert options <= {*OPTIONS[found[1]], "--help", "--no-browser"}, f"{document}: {code}"
