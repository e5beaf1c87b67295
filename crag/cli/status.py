"""The step that a question is in, on standard error's terminal, erased when something else is to be seen."""

import os
import sys
from threading import Lock
from typing import Self

_ERASE = "\r\x1b[K"


class Status:
    """A line that takes the place of itself; nothing at all where standard error is no terminal."""

    def __init__(self) -> None:
        self.shown = bool(sys.stderr and sys.stderr.isatty() and os.environ.get("TERM") != "dumb")
        self._lock = Lock()  # steps end in threads
        self._there = self._over = False

    def show(self, step: str) -> None:
        """Name the step that has begun, until the answer begins."""
        with self._lock:
            if self.shown and not self._over:
                sys.stderr.write(f"{_ERASE}{step.replace('_', ' ')} …")
                sys.stderr.flush()
                self._there = True

    def clear(self) -> None:
        """Erase the line for good."""
        with self._lock:
            self._over = True
            if self._there:
                self._there = False
                sys.stderr.write(_ERASE)
                sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
