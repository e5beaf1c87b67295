"""`python -m crag.run`: ask one question and see the answer, its sources and how it came about."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crag.base.errors import SettingsError
from crag.base.language import readable
from crag.cli.flags import parser, settings_of
from crag.cli.shell import attempt, finish
from crag.cli.typed import decoded

if TYPE_CHECKING:
    from crag.base.answer import Answer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return attempt(parser(), arguments, _run)


def _run(args: argparse.Namespace) -> int:
    from crag.base import tracing
    from crag.cli import view

    tracing.tell_once()
    question = _question(args)
    settings = settings_of(args)
    from crag.pipeline import RunError

    if settings.endpoint("generator") is None and not args.json:
        view.note(
            "No model is configured: documents are scored on this machine and the answer quotes them. "
            "Set OPENAI_API_KEY, or OPENAI_BASE_URL for another server, to have it written."
        )
    options: dict[str, Any] = {"settings": settings, "graph": args.graph or "crag", "thread": args.thread}
    try:
        _answer(args, question, options)
    except RunError as error:
        _show_unanswered(error.answer, as_json=args.json)
        raise
    return 0


def _answer(args: argparse.Namespace, question: str, options: dict[str, Any]) -> None:
    from crag.base import tracing
    from crag.cli import view
    from crag.cli.status import Status
    from crag.pipeline import ask
    from crag.steps import Steps

    def write(piece: str) -> None:
        status.clear()
        view.write_answer(piece, end="")

    stream = not args.json and (sys.stdout.isatty() if args.stream is None else args.stream)
    with tracing.traced(wanted=not args.no_web), Status() as status:
        if status.shown:
            options["config"] = {"callbacks": [Steps(began=status.show)]}
        if stream:
            options["on_text"] = write
        answer = ask(question, **options)
    if args.json:
        view.write_json(answer.model_dump_json(indent=2))
    else:
        view.write_answer("" if stream else answer.answer)
        view.explain(answer, verbose=args.verbose)


def _show_unanswered(answer: "Answer", *, as_json: bool) -> None:
    """What was found and paid for is shown although nobody could make an answer of it."""
    from crag.cli import view

    if answer.documents and as_json:
        view.write_json(answer.model_dump_json(indent=2))
    elif answer.documents:
        view.explain(answer, verbose=True)
    else:
        for warning in answer.warnings:
            view.note(f"crag: warning: {warning}")


def _question(args: argparse.Namespace) -> str:
    question: str | None = args.question
    # Without a standard input there is no stream at all.
    if sys.stdin and (question == "-" or (question is None and not sys.stdin.isatty())):
        question = decoded(sys.stdin.buffer.read(), "on standard input")
    elif question and not question.isascii() and readable(question) != question:
        # The locale could not read the argument, but its bytes are still there.
        question = decoded(os.fsencode(question), "as an argument")
    if question in {None, "-"} or not (question := question.strip()):
        raise SettingsError('no question; give one: python -m crag.run "your question", or --help')
    return question


if __name__ == "__main__":
    finish(main)
