"""A live web search that writes down what it finds, as a snapshot that later runs search in its place."""

import asyncio
import json
from pathlib import Path

from langchain_core.documents import Document

from crag.base.errors import SettingsError
from crag.base.files import cut_half_line
from crag.base.interfaces import WebSearch
from crag.base.metering import meter, metered


class Recorder:
    """A `WebSearch` around another; each page goes to a JSONL of title, url, text and the query, once.

    A query that was asked before is answered from memory, so that all systems see the same web, and pay for
    it once. Raises SettingsError when the file cannot be written or holds an earlier recording.
    """

    def __init__(self, search: WebSearch, path: Path, *, resume: bool) -> None:
        self._search = search
        self._path = path
        self._lock = asyncio.Lock()
        self._known: dict[tuple[str, int], asyncio.Task[list[Document]]] = {}
        self._written: set[tuple[str, str]] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size and not resume:
                raise SettingsError(f"{path} holds a recording already; give another file to --record-web")
            path.touch()
            cut_half_line(path)
        except OSError as error:
            raise SettingsError(f"{path}: {error.strerror}; give another file to --record-web") from None

    async def __call__(self, query: str, limit: int) -> list[Document]:
        """What the web says now. Raises WebSearchError."""
        task = self._known.get((query, limit))
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._known[query, limit] = asyncio.create_task(self._live(query, limit))
        return await asyncio.shield(task)

    async def _live(self, query: str, limit: int) -> list[Document]:
        with metered() as own:
            found = await self._search(query, limit)
        for warning in own.warnings:
            meter().warn(warning)
        async with self._lock:
            await asyncio.to_thread(self._write, query, found)
        return found

    def _write(self, query: str, found: list[Document]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            for page in found:
                url, title = page.metadata["source"], page.metadata["title"]
                if (url, page.page_content) in self._written:
                    continue
                self._written.add((url, page.page_content))
                line = {"title": title, "url": url, "text": page.page_content, "query": query}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
