"""Conversations: where they are kept, what to say when they cannot be, one question of each at a time."""

import asyncio
import hashlib
import logging
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from crag.base.errors import CragError, SettingsError
from crag.base.files import make_private
from crag.base.language import readable
from crag.base.state import Graph
from crag.settings.settings import Settings

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

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


WAITS = 5
"""How many times `settings.timeout` a question waits for another one of its thread."""


def thread_id(settings: Settings, thread: str) -> str:
    """The name under which a conversation is kept: what one filter let be seen is not another's to read.

    Raises SettingsError for a name that is blank, as a variable that was not set is.
    """
    name = readable(str(thread))
    if not name.strip():
        raise SettingsError("the thread has no name; give one, or leave --thread out")
    if not settings.filter:
        return name
    return f"{name} #{hashlib.sha256(repr(settings.filter).encode()).hexdigest()[:16]}"


@asynccontextmanager
async def conversation(
    settings: Settings, thread: str | None, own: BaseCheckpointSaver[Any] | None = None
) -> AsyncIterator[BaseCheckpointSaver[Any] | None]:
    """Where a conversation is kept: by the caller's `own` checkpointer, else in the settings' file.

    None without a thread. Raises SettingsError when the file cannot be used.
    """
    if not thread or own is not None:
        yield own
        return
    try:
        await asyncio.to_thread(make_private, settings.threads)
    except OSError as error:
        raise _unusable(settings, error) from None
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(turn(settings.threads, thread, longest=WAITS * settings.timeout))
        except OSError as error:
            raise _unusable(settings, error) from None
        async with _saver(settings, thread) as saver:
            yield saver


@asynccontextmanager
async def _saver(settings: Settings, thread: str) -> AsyncIterator[BaseCheckpointSaver[str]]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    try:
        async with AsyncSqliteSaver.from_conn_string(str(settings.threads)) as saver:
            yield saver
            await _keep_latest(saver, thread)
    except sqlite3.Error as error:
        raise _unusable(settings, error) from None


async def _keep_latest(saver: "AsyncSqliteSaver", thread: str) -> None:
    """Forget the states that a later one replaced: each holds its whole thread, and nothing goes back."""
    for table in ("checkpoints", "writes"):
        await saver.conn.execute(
            f"DELETE FROM {table} WHERE thread_id = :thread AND checkpoint_id < "
            "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread)",
            {"thread": thread},
        )
    await saver.conn.commit()


async def check_thread(compiled: Graph, config: Any, settings: Settings) -> None:
    """Read what is kept of a conversation. Raises SettingsError when it is none."""
    try:
        await compiled.aget_state(config)
    except sqlite3.Error:
        raise
    except Exception as error:  # whatever another program or version has left there
        raise _unusable(settings, f"what is there is no conversation: {error!r}") from error


def _unusable(settings: Settings, error: Exception | str) -> SettingsError:
    return SettingsError(
        f"conversations cannot be kept in {settings.threads} ({error}); set CRAG_THREADS to another file"
    )
