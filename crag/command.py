"""What the commands share: arguments wrong in one line, and a Ctrl-C that ends without a traceback."""

import argparse
import signal
import sys
from collections.abc import Callable
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line on standard error, with status 2."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """End with the complaint and a pointer to the help."""
        self.exit(2, f"crag: {' '.join(message.split())}; see {self.prog} --help\n")


def finish(main: Callable[[], int]) -> NoReturn:
    """Run a command and end the process with its status; 130 on Ctrl-C, whenever that comes."""
    try:
        status = main()
    except KeyboardInterrupt:
        sys.stderr.write("crag: interrupted\n")
        status = 130
    if status == 130:
        # Threads may still have to end; a second Ctrl-C then ends the process at once and silently.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(status)
