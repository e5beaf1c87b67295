"""What the commands share: arguments wrong in one line, failures in one line, a bar, a quiet Ctrl-C."""

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from crag.base.errors import EXTRAS, CragError, SettingsError
from crag.base.wording import meant
from crag.cli.view import note, prepare_streams, printable

Advance = Callable[[str, int, int | None], None]
"""Told what is being done, how much is done, and of how much, where that is known."""


_called = False


def called_as_crag() -> None:
    """Let help and complaints speak of `crag ask` instead of `python -m crag.run`, as it was typed."""
    global _called
    _called = True


def as_called(text: str) -> str:
    """`text` with the commands in the form in which this process was called."""
    if not _called:
        return text
    text = re.sub(r"python -m crag\.eval\.benchmark|python eval/benchmark\.py", "crag benchmark", text)
    return text.replace("python -m crag.run", "crag ask").replace("python -m crag.", "crag ")


class _Version(argparse.Action):
    """As argparse's own, but the version is looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from crag import __version__

        sys.stdout.write(f"crag {__version__}\n")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line on standard error, with status 2."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=as_called(prog),
            description=as_called(description),
            epilog=as_called(epilog),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("--version", action=_Version, nargs=0, help="show the version and end")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's; an empty value is a variable that was not set, not a wish."""
        known, rest = super().parse_known_args(args, namespace)
        for action in self._actions:
            value = getattr(known, action.dest, None)
            texts = value if isinstance(value, list) else [value]
            if action.option_strings and any(isinstance(text, str) and not text.strip() for text in texts):
                self.error(f"{action.option_strings[-1]} was given an empty value")
        return known, rest

    def error(self, message: str) -> NoReturn:
        """End with the complaint and a pointer to the help."""
        words = printable(" ".join(message.split()))
        self.exit(2, f"crag: {words}{self._hint(message)}; see {self.prog} --help\n")

    def _hint(self, message: str) -> str:
        _, found, given = message.partition("unrecognized arguments: ")
        if not found:
            return ""
        if not given.startswith("-"):
            return " (a text of several words needs quotation marks)"
        if given.split()[0] in self._option_string_actions:
            return " (options stand before --)"
        hint = meant(given.split()[0].split("=")[0], self._option_string_actions, nearness=0.75)
        return f" ({hint})" if hint else ""


def value(text: str) -> str:
    """What an option is given: not nothing, as of a variable that is not set, and no NUL or half a character.

    For `type=` of an argument; the parser names the option.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("nothing is given; leave the option out or give it a value")
    try:
        if "\0" not in text and os.fsencode(text):
            return text
    except UnicodeEncodeError:
        pass
    raise argparse.ArgumentTypeError(f"{text!a} holds a character that no name can hold; leave it out")


def attempt(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    work: Callable[[argparse.Namespace], int],
    interrupted: str = "interrupted",
) -> int:
    """Do the work of a command; returns its status, or says in one line on standard error why it failed.

    2 for settings and arguments; 1 for what could not be done, and when the reader of standard output has
    gone or it never was there; 130 on Ctrl-C, with what `interrupted` says of it.
    """
    prepare_streams()
    args = parser.parse_args(arguments)
    if sys.stdout is None:  # closed by who started it
        note("crag: standard output is closed; send it to a file, a pipe or a terminal")
        return 1
    try:
        return work(args)
    except SettingsError as error:
        note(f"crag: {error}")
        return 2
    except CragError as error:
        note(f"crag: {error}")
    except BrokenPipeError:
        drop_output()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "crag":
            raise  # no package is missing, our own code is wrong
        note(f"crag: this Python lacks the package {error.name}; {EXTRAS}")
        return 2
    except OSError as error:
        note(f"crag: {error.strerror or error}: {error.filename or ''}".rstrip(": "))
    except KeyboardInterrupt:
        note(f"crag: {interrupted}")
        return 130
    return 1


def drop_output() -> None:
    """Whoever read standard output has gone; Python must not try to flush it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def bar(total: int | None = None) -> Iterator[Advance]:
    """A progress bar on standard error, which is a terminal; it is gone when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total)

        def advance(what: str, done: int, total: int | None) -> None:
            line = " ".join(printable(what).split())[:60]
            shown.update(task, description=line, completed=done, total=total)

        yield advance


def finish(main: Callable[[], int]) -> NoReturn:
    """Run a command and end the process with its status; 130 on Ctrl-C, whenever that comes."""
    try:
        status = main()
    except KeyboardInterrupt:
        note("crag: interrupted")
        status = 130
    finally:
        _drop_notes()
    if status == 130:
        # Threads may still have to end; a second Ctrl-C then ends the process at once and silently.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(status)


def _drop_notes() -> None:
    """What standard error cannot take must not become the status with which Python ends."""
    try:
        if sys.stderr:
            sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
