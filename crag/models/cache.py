"""Replies of models kept in a SQLite file: the same prompt to the same model is paid for once.

One of LangChain's caches, so that any LangChain model can be given it too; its own SQLite cache takes six
seconds to import and stores whole prompts. This one stores hashes of them, and replies.
"""

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import BaseMessage
from langchain_core.outputs import Generation

from crag.base.files import make_private
from crag.base.metering import meter
from crag.models.prompting import unmarked

T = TypeVar("T")
_BUSY = 5.0
"""Seconds to wait for another process that writes."""
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, texts TEXT NOT NULL) WITHOUT ROWID"


class ReplyCache(BaseCache):
    """An exact-match cache in one file, for several processes at once; what goes wrong is a warning."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """What was stored for a prompt and a model with its parameters, or None."""
        row = self._tried(lambda db: db.execute(_SELECT, (_key(prompt, llm_string),)).fetchone())
        try:
            texts = json.loads(row[0]) if row else None
        except ValueError:
            return None
        return [Generation(text=str(text)) for text in texts] if isinstance(texts, list) else None

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Store replies, in place of older ones."""
        texts = json.dumps([generation.text for generation in return_val], ensure_ascii=False)

        def write(db: sqlite3.Connection) -> None:
            with db:
                db.execute(_TABLE)
                db.execute(_REPLACE, (_key(prompt, llm_string), texts))

        self._tried(write, create=True)

    def clear(self, **kwargs: Any) -> None:
        """Forget everything."""

        def delete(db: sqlite3.Connection) -> None:
            with db:
                db.execute("DELETE FROM replies")

        self._tried(delete)

    def key(self, messages: Sequence[BaseMessage], model: str) -> str:
        """What messages to a model are stored under."""
        return _key(_text(messages), model)

    async def reply(self, messages: Sequence[BaseMessage], model: str) -> str | None:
        """The one reply to messages, or None."""
        found = await asyncio.to_thread(self.lookup, _text(messages), model)
        return found[0].text if found else None

    async def keep(self, messages: Sequence[BaseMessage], model: str, reply: str) -> None:
        """Store the reply to messages."""
        await asyncio.to_thread(self.update, _text(messages), model, [Generation(text=reply)])

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


def _text(messages: Sequence[BaseMessage]) -> str:
    said = [[message.type, message.content] for message in messages]
    return unmarked(json.dumps(said, ensure_ascii=False))


def _key(prompt: str, llm_string: str) -> str:
    return hashlib.sha256(f"{llm_string}\n{prompt}".encode("utf-8", "replace")).hexdigest()
