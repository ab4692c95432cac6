"""The command line: data on stdout, messages on stderr."""

from attention_atlas.cli.app import main

__all__ = ["main"]
