"""Conversations: where they are kept, under which name, and what to say when they cannot be."""

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from crag.errors import SettingsError
from crag.language import readable
from crag.settings import Settings
from crag.state import Graph


def thread_id(settings: Settings, thread: str) -> str:
    """The name under which a conversation is kept: what one filter let be seen is not another's to read."""
    name = readable(str(thread))
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
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    try:
        await asyncio.to_thread(settings.threads.parent.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(settings, error) from None
    try:
        async with AsyncSqliteSaver.from_conn_string(str(settings.threads)) as saver:
            yield saver
    except sqlite3.Error as error:
        raise _unusable(settings, error) from None


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
