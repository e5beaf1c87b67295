"""Conversations: where they are kept, under which name, and what to say when they cannot be."""

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from crag.base.errors import SettingsError
from crag.base.language import readable
from crag.base.private import make_private
from crag.base.state import Graph
from crag.settings.settings import Settings
from crag.turns import turn

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

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
async def checkpointer(
    settings: Settings, thread: str | None
) -> AsyncIterator[BaseCheckpointSaver[str] | None]:
    """Where conversations are kept, None without a thread. Raises SettingsError when that cannot be used."""
    if not thread:
        yield None
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
