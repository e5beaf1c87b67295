"""An end to what would take for ever."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns, in a thread of its own. Raises what it raises, or TimeoutError when it is late.

    HTTP clients have limits for each piece that arrives, so that a server which drips is never late for them.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
            done.set_exception(error)

    # One that nobody waits for any more must not keep the process from ending.
    Thread(target=run, daemon=True).start()
    return done.result(seconds)
