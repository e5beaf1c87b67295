"""Parts that are built when they are first used, so that a graph is cheap to make and to draw."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once(build: Callable[[], T]) -> Callable[[], T]:
    """A thread-safe thunk whose value is built at its first call and shared by all."""
    lock = threading.Lock()
    built: list[T] = []

    def get() -> T:
        with lock:
            if not built:
                built.append(build())
        return built[0]

    return get


class Later(Generic[P, T]):
    """An async callable that a thread builds at its first call, once, whatever loop calls it.

    Building reads files and loads models, which must not block an event loop.
    """

    def __init__(self, build: Callable[[], Callable[P, Awaitable[T]]]) -> None:
        self._part = once(build)
        self._ready: Callable[P, Awaitable[T]] | None = None

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Build if need be, then call."""
        if self._ready is None:
            self._ready = await asyncio.to_thread(self._part)
        return await self._ready(*args, **kwargs)
