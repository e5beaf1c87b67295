"""The event loop in a thread on which sync callers' coroutines run."""

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from threading import Lock, Thread, get_ident
from typing import Any, TypeVar

from crag.base.errors import SettingsError

T = TypeVar("T")

_loop: asyncio.AbstractEventLoop | None = None
_loop_thread: Thread | None = None
_loop_lock = Lock()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            # A task raised it and holds it for whoever awaits it; the others go on.
            continue
        return


def on_background_loop(work: Coroutine[Any, Any, T], context: Context | None = None) -> T:
    """Run a coroutine on the one loop that sync callers share; clients and connections live on it.

    In `context`, where one is given, it sees the caller's context variables.
    """
    global _loop, _loop_thread
    with _loop_lock:
        if _loop is None or _loop_thread is None or not _loop_thread.is_alive():
            _loop = asyncio.new_event_loop()
            _loop_thread = Thread(target=_serve, args=(_loop,), name="crag", daemon=True)
            _loop_thread.start()
    if get_ident() == _loop_thread.ident:
        work.close()
        raise SettingsError("ask waits for the loop that it is called from; use await aask(…) there")
    future = asyncio.run_coroutine_threadsafe(work if context is None else _seeing(context, work), _loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def _seeing(context: Context, work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.get_running_loop().create_task(work, context=context)
