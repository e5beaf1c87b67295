"""Replies of models kept in a SQLite file: the same prompt to the same model is paid for once.

LangChain's own SQLite cache takes six seconds to import and stores whole prompts; this one stores hashes of
them, and replies.
"""

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from langchain_core.messages import BaseMessage

from crag.base.files import make_private
from crag.base.metering import meter
from crag.models.prompting import unmarked

T = TypeVar("T")
_BUSY = 5.0
"""Seconds to wait for another process that writes."""
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, texts TEXT NOT NULL) WITHOUT ROWID"


class ReplyCache:
    """An exact-match cache in one file, for several processes at once; what goes wrong is a warning."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def key(self, messages: Sequence[BaseMessage], model: str) -> str:
        """What messages to a model are stored under."""
        said = [[message.type, message.content] for message in messages]
        text = f"{model}\n{unmarked(json.dumps(said, ensure_ascii=False))}"
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

    async def reply(self, messages: Sequence[BaseMessage], model: str) -> str | None:
        """The reply to messages, or None."""
        return await asyncio.to_thread(self.found, self.key(messages, model))

    async def keep(self, messages: Sequence[BaseMessage], model: str, reply: str) -> None:
        """Store the reply to messages, in place of an older one."""
        await asyncio.to_thread(self.store, self.key(messages, model), reply)

    def found(self, key: str) -> str | None:
        """What is stored under a key, or None."""
        row = self._tried(lambda db: db.execute(_SELECT, (key,)).fetchone())
        try:
            texts = json.loads(row[0]) if row else None
        except ValueError:
            return None
        return str(texts[0]) if isinstance(texts, list) and texts else None

    def store(self, key: str, reply: str) -> None:
        """Store a reply under a key."""

        def write(db: sqlite3.Connection) -> None:
            with db:
                db.execute(_TABLE)
                db.execute(_REPLACE, (key, json.dumps([reply], ensure_ascii=False)))

        self._tried(write, create=True)

    def _tried(self, work: Callable[[sqlite3.Connection], T], *, create: bool = False) -> T | None:
        try:
            if create:
                make_private(self._path)
            elif not self._path.exists():
                return None
            with closing(sqlite3.connect(self._path, timeout=_BUSY)) as db:
                return work(db)
        except (sqlite3.Error, OSError) as error:
            if "no such table" not in str(error):
                meter().warn(f"replies are not cached in {self._path} ({error}); check CRAG_CACHE")
            return None


_SELECT = "SELECT texts FROM replies WHERE key = ?"
_REPLACE = "INSERT OR REPLACE INTO replies VALUES (?, ?)"
