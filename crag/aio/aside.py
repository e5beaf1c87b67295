"""Blocking work in a thread of its own, which holds up neither its caller nor the end of the process.

HTTP clients have limits for each piece that arrives, so that a server which drips is never late for them;
and `asyncio.run` waits for the threads of `asyncio.to_thread` before it returns.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns. Raises what it raises, as `aside` does, and TimeoutError when it is late."""
    return _started(work).result(seconds)


async def aside(work: Callable[[], T]) -> T:
    """What `work` returns, while the loop goes on; who stops waiting leaves the thread to itself.

    Raises what `work` raises, but RuntimeError in place of what would end the loop or which no future holds:
    an exit, an interrupt, StopIteration.
    """
    return await asyncio.wrap_future(_started(work))


def _started(work: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from now on nobody who stops waiting can cancel it

    def run() -> None:
        try:
            done.set_result(work())
        except StopIteration as error:
            done.set_exception(RuntimeError(repr(error)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
            done.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - an exit or an interrupt ends just this call
            done.set_exception(RuntimeError(repr(error)))

    Thread(target=copy_context().run, args=(run,), name="crag-aside", daemon=True).start()
    return done
