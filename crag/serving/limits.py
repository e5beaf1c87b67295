"""How much at once: so many questions run, so many wait, and the rest is told to come back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from crag.base.errors import CragError


class BusyError(CragError):
    """The queue is full; `RETRY_AFTER` seconds later there may be room."""


class LateError(CragError):
    """A question took longer than the server allows."""


RETRY_AFTER = 1


@dataclass(frozen=True)
class Limits:
    """Questions at once, questions waiting, bytes of a request, seconds of a question with its wait."""

    concurrency: int = 8
    queue: int = 64
    body: int = 1_000_000
    seconds: float = 300.0


class Gate:
    """Lets questions in, in the order in which they came."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._room = asyncio.Semaphore(limits.concurrency)
        self.inside = 0

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Inside, a question may run. Raises BusyError at once where too many wait, LateError in time."""
        if self.inside >= self._limits.concurrency + self._limits.queue:
            raise BusyError("the server has as many questions as it can take; ask again in a moment")
        self.inside += 1
        try:
            async with asyncio.timeout(self._limits.seconds), self._room:
                yield
        except TimeoutError:
            raise LateError(f"the question took more than {self._limits.seconds:g} s") from None
        finally:
            self.inside -= 1
