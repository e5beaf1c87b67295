"""A file of web pages searched in place of the web: for evaluation that repeats and for closed networks."""

import asyncio
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from crag.base.errors import WebSearchError
from crag.base.files import json_lines
from crag.base.language import Language, language_of
from crag.base.metering import meter
from crag.settings.settings import Settings
from crag.text.terms import content_terms, terms
from crag.web.results import distinct, first_text, shortened, web_address, web_document

_FORMAT = "a JSONL file of title, url and text"
_FOREIGN = 0.5
"""Weight of a page in the other language: names alone must not lift a translation above the original."""


class Snapshot:
    """A `WebSearch` in the pages of CRAG_WEB_SNAPSHOT, ranked by BM25 over title and text.

    Each line is an object with `url`, a text in `text`, `content` or `snippet`, and perhaps `title` and
    `id`, which then names the document. A search counts as a web call although none leaves the machine,
    so that evaluations show what the real thing would cost.
    """

    def __init__(self, settings: Settings) -> None:
        self._path = settings.web_snapshot

    async def __call__(self, query: str, limit: int) -> list[Document]:
        """At most `limit` pages that share a word with the query, best first; raises WebSearchError."""
        meter().web_calls += 1
        return await asyncio.to_thread(self._search, query, limit)

    def _search(self, query: str, limit: int) -> list[Document]:
        if self._path is None:
            raise WebSearchError(f"no web snapshot is named; set CRAG_WEB_SNAPSHOT to {_FORMAT}")
        pages = _pages(self._path)
        if pages.warning:
            meter().warn(pages.warning)
        return shortened(pages.find(query, limit))


@dataclass(frozen=True)
class Pages:
    """The pages of one file and their BM25 index."""

    documents: list[Document]
    languages: list[Language]
    bm25: Any
    warning: str | None

    def find(self, query: str, limit: int) -> list[Document]:
        """The best `limit` pages with a score above 0."""
        asked, language = content_terms(query), language_of(query)
        if not asked:
            return []
        scores = [
            float(score) * (1 if own == language else _FOREIGN)
            for score, own in zip(self.bm25.get_scores(asked), self.languages, strict=True)
        ]
        best = sorted(range(len(scores)), key=lambda page: -scores[page])[:limit]
        return [self.documents[page] for page in best if scores[page] > 0]


def snapshot_warning(path: Path) -> str | None:
    """Which lines of a snapshot are left out, if any; reads it. Raises WebSearchError if it holds no page."""
    return _pages(path).warning


_reading = threading.Lock()


def _pages(path: Path) -> Pages:
    """The pages as the file now is; read again only when it has changed."""
    try:
        stat = path.stat()
        with _reading:
            return _read(path.absolute(), stat.st_mtime_ns, stat.st_size)
    except OSError as error:
        raise WebSearchError(
            f"web snapshot {path}: {error.strerror}; set CRAG_WEB_SNAPSHOT to {_FORMAT}"
        ) from None


@lru_cache(maxsize=2)
def _read(path: Path, mtime_ns: int, size: int) -> Pages:
    documents: list[Document] = []
    unusable: list[str] = []
    for number, record in json_lines(path.read_bytes()):
        if isinstance(record, str):
            unusable.append(f"line {number} {record}")
            continue
        url, text = web_address(record.get("url")), first_text(record, "text", "content", "snippet")
        if not (url and text):
            unusable.append(f"line {number} has no text or no web address")
            continue
        page = web_document(record.get("title"), url, text)
        name = first_text(record, "id")
        documents.append(page.model_copy(update={"id": name}) if name else page)
    documents = distinct(documents)
    corpus = [terms(f"{page.metadata['title']}\n{page.page_content}") for page in documents]
    if not any(corpus):
        raise WebSearchError(
            f"web snapshot {path} holds no page with text and a web address"
            + (f" ({unusable[0]})" if unusable else "")
            + f"; give it {_FORMAT}"
        )
    import bm25s

    bm25 = bm25s.BM25()
    bm25.index(corpus, show_progress=False)
    warning = f"web snapshot {path}: {_listed(unusable)}; left out" if unusable else None
    return Pages(documents, [language_of(page.page_content) for page in documents], bm25, warning)


def _listed(lines: list[str]) -> str:
    more = f", and {len(lines) - 3} more" if len(lines) > 3 else ""
    return ", ".join(lines[:3]) + more
