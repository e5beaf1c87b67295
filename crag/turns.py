"""One question of a conversation at a time, whoever asks it: the later is understood from the earlier."""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crag.base.errors import CragError
from crag.base.language import readable

if TYPE_CHECKING:
    from filelock import BaseFileLock

_POLL = 0.1  # seconds
_GUARD = 10.0  # seconds; it is held for a moment, unless its process was stopped


@asynccontextmanager
async def turn(file: Path, thread: str, *, longest: float) -> AsyncIterator[None]:
    """Wait until no other question of a thread that is kept in `file` is being answered, then hold it.

    A wait is logged. Raises CragError when it takes longer than `longest` seconds, OSError for a folder
    in which no file can be locked.
    """
    name = readable(thread)[:60]
    place = file.with_name(f"{file.name}.{hashlib.sha256(thread.encode()).hexdigest()[:16]}.lock")
    began, told = time.monotonic(), False
    while (held := await asyncio.to_thread(_take, file, place)) is None:
        if time.monotonic() - began > longest:
            raise CragError(
                f"the thread {name!r} was still answering another question after {longest:g} s; "
                "ask again when that is done, or in another thread"
            )
        if not told:
            told = True
            logging.getLogger("crag").warning(
                "crag: the thread %r is answering another question; waiting for at most %g s", name, longest
            )
        await asyncio.sleep(_POLL)
    try:
        yield
    finally:
        await asyncio.shield(asyncio.to_thread(_give, file, place, held))


def _guard(file: Path) -> "BaseFileLock":
    """Held while a lock is opened or deleted, so that nobody holds one that is no longer in the folder."""
    from filelock import FileLock

    return FileLock(file.with_name(f"{file.name}.lock"), timeout=_GUARD, mode=0o600)


def _take(file: Path, place: Path) -> "BaseFileLock | None":
    """The lock, None when somebody else has it. It ends with its process, or when nobody refers to it."""
    from filelock import FileLock, Timeout

    lock = FileLock(place, thread_local=False, mode=0o600)
    with _guard(file):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
    return lock


def _give(file: Path, place: Path, lock: "BaseFileLock") -> None:
    with _guard(file):
        with suppress(OSError):  # a system may not delete what is open
            place.unlink()
        lock.release()
