"""Parts that are built when they are first used, so that a graph is cheap to make and to draw."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class Later(Generic[P, T]):
    """An async callable that a thread builds at its first call, once, whatever loop calls it.

    Building reads files and loads models, which must not block an event loop.
    """

    def __init__(self, build: Callable[[], Callable[P, Awaitable[T]]]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._part: Callable[P, Awaitable[T]] | None = None

    def _built(self) -> Callable[P, Awaitable[T]]:
        with self._lock:
            if self._part is None:
                self._part = self._build()
            return self._part

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Build if need be, then call."""
        part = self._part or await asyncio.to_thread(self._built)
        return await part(*args, **kwargs)


def once(build: Callable[[], Any]) -> Callable[[], Any]:
    """A thread-safe thunk whose value is built at its first call and shared by all."""
    lock = threading.Lock()
    built: list[Any] = []

    def get() -> Any:
        with lock:
            if not built:
                built.append(build())
            return built[0]

    return cast("Callable[[], Any]", get)
