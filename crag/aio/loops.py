"""What is made at its first use: once, or once for each event loop and closed when the loop shuts down.

HTTP clients and semaphores break when a second loop uses them, yet a library cannot know how many loops
its callers run.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, ParamSpec, TypeVar

T = TypeVar("T")
_Loop = asyncio.AbstractEventLoop


class PerLoop(Generic[T]):
    """One value for each running event loop, built in a thread because building may read files.

    A loop that ends as `asyncio.run` ends it closes its value; open connections would outlive it otherwise.
    """

    def __init__(self, build: Callable[..., T], close: Callable[[T], Awaitable[None]] | None = None) -> None:
        self._build = build
        self._close = close
        self._lock = threading.Lock()
        self._values: dict[_Loop, T] = {}
        self._keepers: dict[_Loop, AsyncGenerator[None]] = {}

    async def get(self, *needs: object) -> T:
        """The value of the loop that is running, built from `needs` at the first call."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            await asyncio.to_thread(self._built, loop, needs)
        if loop not in self._keepers:
            self._keepers[loop] = self._keep(loop)
            await anext(self._keepers[loop])
        return self._values[loop]

    def _built(self, loop: _Loop, needs: tuple[object, ...]) -> None:
        with self._lock:
            if loop not in self._values:
                self._values[loop] = self._build(*needs)

    async def _keep(self, loop: _Loop) -> AsyncGenerator[None]:
        """Rest until the loop shuts down its unfinished generators, its only hook for closing things."""
        try:
            yield
        finally:
            value = self._values.pop(loop)
            del self._keepers[loop]
            if self._close:
                await self._close(value)


class Slots:
    """Places for what may run at the same time in one event loop."""

    def __init__(self) -> None:
        self._by_limit: PerLoop[dict[int, asyncio.Semaphore]] = PerLoop(dict)

    async def of(self, limit: int) -> asyncio.Semaphore:
        """Those that `limit` calls share; by limit, because two Settings of one process may differ."""
        known = await self._by_limit.get()
        return known.setdefault(limit, asyncio.Semaphore(limit))


P = ParamSpec("P")


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
