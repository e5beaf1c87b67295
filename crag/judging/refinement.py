"""Refinement: of all web pages in one call, the sentences that bear on the question, word for word."""

from langchain_core.documents import Document

from crag.base.errors import ModelError
from crag.base.interfaces import Chat
from crag.base.language import language_of
from crag.base.metering import meter
from crag.models.prompting import External, prompt
from crag.replies.pages import read_pages
from crag.text.budget import shares, shorten

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
