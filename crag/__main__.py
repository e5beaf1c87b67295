"""`crag`: one command for everything; `crag ask --help` tells the rest. `python -m crag` is the same."""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

from crag.cli.shell import Parser, called_as_crag, finish

DESCRIPTION = """\
Corrective RAG: answers from your documents, with every document scored and every answer accounted for.
"""


class Command(NamedTuple):
    """Where a command is, and what it does in one line."""

    module: str
    about: str


COMMANDS = {
    "ask": Command("crag.run", "ask one question"),
    "chat": Command("crag.chat", "a conversation; models stay loaded, follow-ups are understood"),
    "ingest": Command("crag.ingest", "read documents into the knowledge base, again to update it"),
    "serve": Command("crag.serving.serve", "an endpoint for chat programs and for programs of your own"),
    "mcp": Command("crag.serving.mcp", "a tool for agents (Model Context Protocol)"),
    "doctor": Command("crag.doctor", "test what is configured, part by part"),
    "benchmark": Command("crag.eval.benchmark", "compare systems on a set of questions"),
    "calibrate": Command("crag.calibrate", "fit thresholds and evaluator to labels of your own"),
}
SHELLS = ("bash", "zsh", "fish")

EPILOG = (
    "commands:\n"
    + "".join(f"  {name:<11}{command.about}\n" for name, command in COMMANDS.items())
    + """  completion bash, zsh or fish: a script that completes commands and flags

examples:
  crag ingest my-documents/
  crag ask "Which chunk size fits FAQs?"
  crag serve
  eval "$(crag completion bash)"

crag COMMAND --help tells what a command takes.
"""
)


def parser() -> ArgumentParser:
    """The command line before the command's own."""
    p = Parser("crag", DESCRIPTION, EPILOG)
    p.usage = "crag COMMAND ..."
    p.add_argument("command", nargs="?", metavar="COMMAND", choices=[*COMMANDS, "completion"])
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    called_as_crag()
    given = list(sys.argv[1:] if arguments is None else arguments)
    args = parser().parse_args(given[:1])
    if args.command is None:
        parser().print_help()
        return 0
    if args.command == "completion":
        return _completion(given[1:])
    status: int = import_module(COMMANDS[args.command].module).main(given[1:])
    return status


def _completion(arguments: Sequence[str]) -> int:
    p = Parser("crag completion", "Write a completion script for a shell on standard output.", "")
    p.add_argument("shell", choices=SHELLS)
    shell = p.parse_args(arguments).shell
    import shtab

    root = ArgumentParser("crag")
    root.add_argument("--version", action="store_true", help="show the version")
    commands = root.add_subparsers()
    for name, command in COMMANDS.items():
        own = import_module(command.module).parser()
        commands.add_parser(name, help=command.about, parents=[own], add_help=False)
    commands.add_parser("completion", help="a completion script").add_argument("shell", choices=SHELLS)
    sys.stdout.write(shtab.complete(root, shell=shell))
    return 0


def command() -> NoReturn:
    """The console script."""
    finish(main)


if __name__ == "__main__":
    command()
