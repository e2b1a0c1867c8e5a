"""``headgate``: finds the command and runs it. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from headgate._version import __version__
from headgate.errors import HeadgateError

COMMANDS = {
    "demo": "three Linear Road queries with deadlines, beside the same queries on stock Spark",
    "run": "run a script that uses Headgate, with a live view",
    "explain": "the last decisions about a query, and why",
    "state": "back up the state of queries in erasure-coded fragments, list, verify, restore and repair it",
    "bench": "measure Headgate: against stock Spark and the papers, its sources, its state, its own cost",
    "defaults": "the Spark settings that Headgate starts a session with, each with its reason",
}


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser; only the module of `command` is imported, the others are known by their one line."""
    top = argparse.ArgumentParser(prog="headgate", description="Deadlines for PySpark Structured Streaming queries.")
    top.add_argument("--version", action="version", version=f"headgate {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        sub = commands.add_parser(name, help=line, description=line)
        if name == command:
            importlib.import_module(f"headgate.cli.{name}").arguments(sub)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if not word.startswith("-")), None)
    if command not in COMMANDS:
        command = None
    parsed = parser(command).parse_args(arguments)
    try:
        return int(importlib.import_module(f"headgate.cli.{parsed.command}").run(parsed))
    except HeadgateError as error:
        print(f"headgate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("headgate: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
