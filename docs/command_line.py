"""Writes docs/command-line.md from the commands' own help: python -m docs.command_line."""

from pathlib import Path

from typer.testing import CliRunner

from attention_atlas.cli.app import app

PAGE = Path(__file__).parent / "command-line.md"


def page() -> str:
    names = [command.name or command.callback.__name__ for command in app.registered_commands]  # type: ignore[union-attr]
    parts = [
        "# The command line",
        "Written by `python -m docs.command_line` from the help of the commands themselves. Data "
        "goes to stdout, talk to stderr. An error of ours is one line and exit code 2; what is "
        "already done is skipped.",
        _help([]),
    ]
    for name in names:
        parts += [f"## {name}", _help([name])]
    return "\n\n".join(parts) + "\n"


def _help(command: list[str]) -> str:
    """As a terminal of 96 columns shows it."""
    told = CliRunner().invoke(
        app, [*command, "--help"], prog_name="attention-atlas", env={"COLUMNS": "96"}
    )
    lines = [line.rstrip() for line in told.output.strip().splitlines()]
    return "\n".join(["```text", *lines, "```"])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
