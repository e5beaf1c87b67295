"""Refinement: what bears on the question, word for word: sentences of web pages, strips of passages."""

import asyncio
from typing import NamedTuple

from langchain_core.documents import Document

from crag.base.errors import ModelError
from crag.base.interfaces import Chat
from crag.base.language import language_of
from crag.base.metering import meter
from crag.judging.grading import asked_scores
from crag.models.prompting import External, prompt
from crag.replies.pages import read_pages
from crag.text.budget import count_tokens, shares, shorten
from crag.text.sentences import split_strips

KEEP = 3
"""Strips with this score or more, out of 5, are kept."""

STRIP_TOKENS = 6000
"""Tokens of strips that one call is shown; what is more goes to further calls, side by side."""

LONGEST_PAGE = 4000
"""Tokens of a page that the model reads at most, and that remain when it cannot be asked."""


class ModelRefiner:
    """An `interfaces.Refiner`: one model call for all documents together, within `context_tokens`.

    Each page gets an equal share of the tokens; what short ones leave goes to the longer ones. What the model
    returns counts only where it stands in the page: a line it made up or reworded is left out, and none gets
    to a page in which it does not stand. A page of which it returns nothing that can be used, and every page
    when it cannot be asked, stays as it is, cut to LONGEST_PAGE tokens, with a warning.
    """

    def __init__(self, chat: Chat, context_tokens: int) -> None:
        self._chat = chat
        self._context_tokens = context_tokens
        self._prompt = prompt("refine")

    async def __call__(self, question: str, documents: list[Document]) -> list[Document]:
        """The refined documents in their order, without those that have nothing to say."""
        pages = [
            document.model_copy(update={"page_content": text})
            for document in documents
            if (text := shorten(document.page_content, LONGEST_PAGE).strip())
        ]
        texts = await self._refined(question, pages) if pages else []
        return [
            page if lines is None else page.model_copy(update={"page_content": "\n".join(lines)})
            for page, lines in zip(pages, texts, strict=True)
            if lines is None or lines
        ]

    async def _refined(self, question: str, pages: list[Document]) -> list[list[str] | None]:
        """The lines to keep of each page, None where that is not known."""
        shown = [
            External.of(page, n, text=shorten(page.page_content, share))
            for n, (page, share) in enumerate(zip(pages, self._shares(pages), strict=True), 1)
        ]
        try:
            reply = await self._chat(
                self._prompt.render(language_of(question), question=question, pages=shown)
            )
        except ModelError as error:
            _warn(len(pages), str(error))
            return [None] * len(pages)
        lines = read_pages(reply, [page.text for page in shown])
        if unread := lines.count(None):
            _warn(
                unread, f"{self._chat.name} returned nothing that stands in {'it' if unread == 1 else 'them'}"
            )
        return lines

    def _shares(self, pages: list[Document]) -> list[int]:
        return shares([page.page_content for page in pages], self._context_tokens)


def _warn(pages: int, why: str) -> None:
    meter().warn(f"{'a web page was' if pages == 1 else f'{pages} web pages were'} not refined: {why}")


class _Strip(NamedTuple):
    document: int
    text: str


class ModelStripRefiner:
    """An `interfaces.Refiner`: the strips of all documents are scored in one call, those from KEEP up stay.

    The decompose-then-recompose of Corrective RAG (arXiv 2401.15884, section 4.4). A strip that could not be
    scored stays too: nothing says that it is useless. Only more than STRIP_TOKENS take further calls.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._prompt = prompt("grade_strips")

    async def __call__(self, question: str, documents: list[Document]) -> list[Document]:
        """The documents in their order, each of its kept strips in theirs; those without any are dropped."""
        strips = [
            _Strip(n, text)
            for n, document in enumerate(documents)
            for text in split_strips(document.page_content)
        ]
        lists = await asyncio.gather(*(self._scores(question, batch) for batch in _batches(strips)))
        scores = [score for scores in lists for score in scores]
        kept: dict[int, list[str]] = {}
        dropped = set()
        for strip, score in zip(strips, scores, strict=True):
            if score is None or score >= KEEP:
                kept.setdefault(strip.document, []).append(strip.text)
            else:
                dropped.add(strip.document)
        return [
            documents[n].model_copy(update={"page_content": "\n".join(texts)})
            if n in dropped
            else documents[n]
            for n, texts in kept.items()
        ]

    async def _scores(self, question: str, strips: list[_Strip]) -> list[float | None]:
        lines = (f"{n}: {' '.join(strip.text.split())}" for n, strip in enumerate(strips, 1))
        messages = self._prompt.render(
            language_of(question),
            question=question,
            strips=External("\n".join(lines)),
            count=str(len(strips)),
        )
        read = await asked_scores(self._chat, messages, len(strips))
        if missing := read.scores.count(None):
            meter().warn(f"{missing} of {len(strips)} strips were kept unscored: {read.why}")
        return read.scores


def _batches(strips: list[_Strip]) -> list[list[_Strip]]:
    batches: list[list[_Strip]] = []
    room = 0
    for strip in strips:
        size = count_tokens(strip.text) + 4
        if size > room or not batches:
            batches.append([])
            room = STRIP_TOKENS
        batches[-1].append(strip)
        room -= size
    return batches
