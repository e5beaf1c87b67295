"""Refinement: of each web page, the sentences that bear on the question, word for word."""

import asyncio
import re

from langchain_core.documents import Document

from crag.budget import count_tokens, shorten
from crag.errors import ModelError
from crag.interfaces import Chat
from crag.language import language_of
from crag.metering import meter
from crag.prompting import External, prompt
from crag.reading import SENTENCE_END

LONGEST_PAGE = 4000
"""Tokens of a page that the model reads, and that remain when it cannot be asked."""

_NOTHING = re.compile(r"\W*none\W*", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*+•>]|\d{1,2}[.)、])\s+")
_AROUND = " \t\"'“”‘’「」*`…"


class ModelRefiner:
    """An `interfaces.Refiner`: one model call per document, all side by side.

    What the model returns counts only where it stands in the page: a line it made up or reworded is left
    out. A page it cannot be asked about, or of which it returns no line of the page, stays as it is, cut to
    LONGEST_PAGE tokens, with a warning.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._prompt = prompt("refine")

    async def __call__(self, question: str, documents: list[Document]) -> list[Document]:
        """The refined documents in their order, without those that have nothing to say."""
        texts = await asyncio.gather(*(self._refined(question, document) for document in documents))
        return [
            document.model_copy(update={"page_content": text})
            for document, text in zip(documents, texts, strict=True)
            if text
        ]

    async def _refined(self, question: str, document: Document) -> str:
        page = shorten(document.page_content, LONGEST_PAGE).strip()
        if not page:
            return ""
        shown = External.of(document, text=page)
        try:
            reply = await self._chat(
                self._prompt.render(language_of(question), question=question, document=shown)
            )
        except ModelError as error:
            meter().warn(f"a web page was not refined: {error}")
            return page
        if _NOTHING.fullmatch(reply):
            return ""
        lines = _verbatim(reply, page)
        if lines:
            return "\n".join(lines)
        if _NOTHING.match(reply):
            return ""
        meter().warn(f"a web page was not refined: {self._chat.name} returned nothing that stands in it")
        return page


def _verbatim(reply: str, page: str) -> list[str]:
    """The lines of a reply that stand in the page, else their sentences that do; white space aside."""
    searched = " ".join(page.split()).casefold()

    def stands(text: str) -> bool:
        return count_tokens(text) >= 3 and text.casefold() in searched

    found: list[str] = []
    for line in reply.splitlines():
        text = " ".join(_BULLET.sub("", line).strip(_AROUND).split())
        found += [text] if stands(text) else filter(stands, SENTENCE_END.split(text))
    return found
