"""`crag chat`: a conversation in the terminal, or question by question from a pipe."""

import argparse
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.base.errors import CragError
from crag.base.language import readable
from crag.cli.flags import add_flags, settings_of
from crag.cli.shell import Parser, attempt, finish
from crag.cli.typed import decoded

if TYPE_CHECKING:
    from crag.base.answer import Answer
    from crag.settings.settings import Settings

DESCRIPTION = """\
Ask, and ask on: follow-ups are understood from what was said before, and models stay loaded. With --thread
NAME the conversation is kept for another day. From a pipe, each line is a question.
"""

EXAMPLES = """\
examples:
  crag chat
  crag chat --thread work
  printf 'What is RRF?\\nAnd its formula?\\n/why\\n' | crag chat

in the chat:
  /sources, /why, /new, /help, /quit; Ctrl-C stops an answer, Ctrl-D ends
"""

HELP = """\
/sources     what the last answer cites, with the passages
/why         every document with its score, the verdict, the path and the cost of the last answer
/new [NAME]  begin another conversation, kept under NAME if one is given
/quit        end, as Ctrl-D does; Ctrl-C stops an answer and keeps the conversation"""

PROMPT = "› "
HISTORY = 500  # lines


def parser() -> argparse.ArgumentParser:
    """The command line, without importing anything heavy."""
    p = Parser("crag chat", DESCRIPTION, EXAMPLES)
    add_flags(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return attempt(parser(), arguments, _run)


def _run(args: argparse.Namespace) -> int:
    from crag.base import tracing
    from crag.cli import view

    tracing.tell_once()
    settings = settings_of(args)
    if terminal := bool(sys.stdin and sys.stdin.isatty()):
        view.note("Ask about your documents; /help tells the rest, Ctrl-D ends.")
        threading.Thread(target=_warm, args=(settings,), daemon=True).start()
    chat = Chat(settings, args.graph or "crag", args.thread)
    with _line_editing(terminal), tracing.traced(wanted=not args.no_web):
        while (line := _line(terminal)) is not None:
            if line.strip() and not chat.take(line.strip()):
                break
    return 1 if chat.failed and not terminal else 0


class Chat:
    """One session: what was typed → what is shown."""

    def __init__(self, settings: "Settings", graph: str, thread: str | None) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        self._settings, self._graph = settings, graph
        self._memory = InMemorySaver()
        self._numbers = count(1)
        self._begin(thread)
        self.failed = False

    def _begin(self, thread: str | None) -> None:
        self._last: Answer | None = None
        # Without a name a conversation lives as long as the session.
        self._kept: dict[str, Any] = (
            {"thread": thread}
            if thread
            else {"thread": f"chat {next(self._numbers)}", "checkpointer": self._memory}
        )

    def take(self, line: str) -> bool:
        """Answer a question or follow a command; whether the session goes on."""
        from crag.cli import view

        word, _, rest = line.partition(" ")
        if not line.startswith("/"):
            self._ask(line)
        elif word in {"/quit", "/exit"}:
            return False
        elif word == "/new":
            self._begin(rest.strip() or None)
            view.note("A new conversation.")
        elif word == "/help":
            _notes(HELP)
        elif word not in {"/sources", "/why"}:
            view.note(f"crag: there is no {word}; /help tells what there is")
        elif self._last is None:
            view.note("Nothing was answered yet.")
        elif word == "/why":
            view.explain(self._last, verbose=True)
        else:
            view.cite(self._last)
        return True

    def _ask(self, question: str) -> None:
        from crag.cli import view
        from crag.cli.status import Status
        from crag.pipeline import ask
        from crag.steps import Steps

        begun = False

        def write(piece: str) -> None:
            nonlocal begun
            status.clear()
            begun = True
            view.write_answer(piece, end="")

        try:
            with Status() as status:
                self._last = ask(
                    question,
                    settings=self._settings,
                    graph=self._graph,
                    on_text=write,
                    config={"callbacks": [Steps(began=status.show)]},
                    **self._kept,
                )
            view.write_answer("")
            view.sources_of(self._last)
        except KeyboardInterrupt:
            if begun:
                view.write_answer("")
            view.note("(stopped)")
        except CragError as error:
            self.failed = True
            if begun:
                view.write_answer("")
            view.note(f"crag: {error}")


def _notes(text: str) -> None:
    from crag.cli import view

    for line in text.splitlines():
        view.note(line)


def _line(terminal: bool) -> str | None:
    """The next line, None at the end; Ctrl-C at the prompt drops what was typed."""
    if not terminal:
        data = sys.stdin.buffer.readline() if sys.stdin else b""
        return decoded(data, "on standard input") if data else None
    while True:
        try:
            if sys.stdout.isatty():
                return readable(input(PROMPT))
            sys.stderr.write(PROMPT)
            sys.stderr.flush()
            return readable(sys.stdin.readline()) or None
        except EOFError:
            sys.stderr.write("\n")
            return None
        except KeyboardInterrupt:
            sys.stderr.write("\n")


def _warm(settings: "Settings") -> None:
    """Load what the first question needs while it is typed; what fails is told when it is asked."""
    from crag.pipeline import prepare

    with suppress(CragError):
        prepare(settings)


class _line_editing:  # noqa: N801 - a context manager, used as one
    """Arrow keys and the lines of earlier sessions, kept where their owner alone can read them."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._file: Path | None = None

    def __enter__(self) -> None:
        if not self._wanted:
            return
        try:
            import readline
        except ImportError:  # Windows has its own line editing
            return
        import platformdirs

        from crag.base.files import make_private

        file = Path(platformdirs.user_state_dir("crag")) / "chat_history"
        readline.set_history_length(HISTORY)
        with suppress(OSError):
            make_private(file)
            readline.read_history_file(file)
            self._file = file

    def __exit__(self, *_: object) -> None:
        if self._file:
            import readline

            with suppress(OSError):
                readline.write_history_file(self._file)


if __name__ == "__main__":
    finish(main)
