"""Which commands are there, and how do they fail?

An `AtlasError` is one line on stderr and exit code 2. Nothing heavy is imported before a command
runs, so `--help` answers at once.
"""

import io
import os
import sys

import typer

from attention_atlas.cli.build import build
from attention_atlas.cli.capture import capture
from attention_atlas.cli.causal import causal
from attention_atlas.cli.check import check
from attention_atlas.cli.compare import compare
from attention_atlas.cli.demo import demo
from attention_atlas.cli.export import export
from attention_atlas.cli.heads import heads
from attention_atlas.cli.label import label
from attention_atlas.cli.layout import layout
from attention_atlas.cli.mcp import mcp
from attention_atlas.cli.measure import measure
from attention_atlas.cli.probes import probes
from attention_atlas.cli.report import report
from attention_atlas.cli.serve import serve
from attention_atlas.cli.spread import spread
from attention_atlas.cli.talk import say
from attention_atlas.cli.test import test
from attention_atlas.cli.view import view
from attention_atlas.names.errors import AtlasError

COMMANDS = (
    demo, view, build, check, capture, measure, causal, layout, heads, compare, report, serve,
    export, label, probes, test, mcp,
)  # fmt: skip

app = typer.Typer(
    name="attention-atlas",
    help="See, measure and test what attention does inside any transformer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in COMMANDS:
    app.command()(spread(command))


def main() -> None:
    """Run the command line; an `AtlasError` becomes one line and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files that are no Unicode
    try:
        app()
    except AtlasError as problem:
        say(f"attention-atlas: {problem}")
        sys.exit(2)
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as problem:  # of the machine: a file that may not be read, a full disk
        say(f"attention-atlas: {problem}")
        sys.exit(2)
    except MemoryError:
        say("attention-atlas: there is not enough memory; close other programs or ask for less")
        sys.exit(2)
