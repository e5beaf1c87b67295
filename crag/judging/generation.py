"""The answer: written by a model from the documents alone, with citations of documents that exist."""

import re
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.documents import Document

from crag.base.errors import ContextTooLongError, ModelError
from crag.base.interfaces import REASON, Chat, Draft
from crag.base.language import Language, language_of
from crag.base.metering import meter
from crag.models.prompting import External, prompt
from crag.replies.citations import REFUSAL, CitationFilter, cited
from crag.replies.links import links_of
from crag.text.budget import pack

__all__ = [
    "NEAREST",
    "OPENING",
    "CitationFilter",
    "ModelGenerator",
    "citable",
    "cited",
    "cleaner",
    "numbered",
    "refusal",
    "uncertain",
]

OPENING: dict[Language, str] = {"en": "The documents say:", "zh": "文档中写道："}
"""The first line of an answer that quotes."""

NEAREST: dict[Language, str] = {
    "en": "These passages come nearest; whether they answer is uncertain:",
    "zh": "以下段落最为接近，但是否回答了问题并不确定：",
}
"""The same where the verdict is ambiguous and nothing else was found."""

_OWN_NUMBERS = re.compile(r"[\[【［](\s*\^?[0-9０-９][0-9０-９\s,，、;；–-]{0,20})[\]】］]")

_REFUSALS: dict[Language, dict[str, str]] = {
    "en": {
        "kb": "The answer was not found in your documents.",
        "web": "The answer was not found in your documents or on the web.",
        "off": "The answer was not found in your documents; web search is off.",
        "unavailable": "The answer was not found in your documents, and the web could not be searched.",
        "ceiling": "No answer was written: the ceiling for a question was reached.",
    },
    "zh": {
        "kb": "在您的文档中没有找到答案。",
        "web": "在您的文档和网络上都没有找到答案。",
        "off": "在您的文档中没有找到答案；网络搜索未开启。",
        "unavailable": "在您的文档中没有找到答案，网络搜索也无法使用。",
        "ceiling": "未能作答：已达到单个问题的上限。",
    },
}


def uncertain(answer: str) -> str:
    """A quoting answer that opens with NEAREST; any other answer as it is."""
    for language, opening in OPENING.items():
        if answer.startswith(f"{opening}\n"):
            return NEAREST[language] + answer[len(opening) :]
    return answer


def refusal(language: Language, web_status: str | None = None) -> str:
    """The sentence of a run that found no answer; it says what was tried.

    `web_status` as in the state: "ok" and "empty" mean searched, "off", "unavailable: why", None not tried.
    "ceiling" says that the question had spent what it may before anything was written.
    """
    status = (web_status or "").partition(":")[0]
    kind = {"": "kb", "ok": "web", "empty": "web"}.get(status, status)
    return _REFUSALS[language][kind if kind in _REFUSALS[language] else "kb"]


def cleaner(
    question: str, documents: Sequence[Document], *, wary: bool = False, sealed: bool = False
) -> CitationFilter:
    """The filter of an answer to a question from documents: their addresses pass, and the question's."""
    meta = (str(document.metadata.get(key) or "") for document in documents for key in ("source", "title"))
    links = links_of([question, *(document.page_content for document in documents), *meta])
    return CitationFilter(citable(documents), links, wary=wary, sealed=sealed)


class ModelGenerator:
    """An `interfaces.Generator`: one model call over the documents, within `context_tokens`.

    When the server says that the prompt is too long, it is asked once more with half of the tokens. With
    `reasons`, each document comes with the reason of its grade (REASON).
    """

    def __init__(self, chat: Chat, context_tokens: int, *, reasons: bool = False) -> None:
        self._chat = chat
        self._context_tokens = context_tokens
        self._reasons = reasons
        self._prompt = prompt("generate_reasons" if reasons else "generate")

    async def __call__(self, question: str, documents: list[Document]) -> Draft:
        """The answer, cleaned as `CitationFilter` cleans it, or a refusal. Raises ModelError."""
        try:
            reply = await self._ask(question, documents, self._context_tokens)
        except ContextTooLongError as error:
            meter().warn(f"asked again with half of the context: {error}")
            reply = await self._ask(question, documents, self._context_tokens // 2)
        clean = cleaner(question, documents)
        text = clean.feed(reply) + clean.end()
        if clean.dropped:
            unknown = ", ".join(f"[{n}]" for n in clean.dropped[:5])
            meter().warn(f"removed citations of sources that do not exist: {unknown}")
        if clean.unlinked:
            meter().warn(f"removed {clean.unlinked} link(s) or image(s) that no source has")
        if clean.refused or (not text and not clean.answered):
            return Draft(refusal(language_of(question), _searched(documents)), answered=False)
        if not text:
            raise ModelError(
                f"generator model {self._chat.name} wrote nothing; try again or use another model"
            )
        if clean.answered and not clean.cited:
            meter().warn("the answer cites no source")
        return Draft(text, clean.answered)

    async def _ask(self, question: str, documents: list[Document], tokens: int) -> str:
        sources = numbered(documents, tokens, reasons=self._reasons)
        return await self._chat(
            self._prompt.render(language_of(question), question=question, sources=sources, refusal=REFUSAL)
        )


def numbered(documents: Sequence[Document], tokens: int, *, reasons: bool = False) -> list[External]:
    """The documents as a generator sees them: within `tokens`, the n-th as [n] whatever was left out.

    A document without text is left out.
    """
    # What is dropped to fit must not shift the numbers of what stays.
    placed = [
        document.model_copy(update={"metadata": {**document.metadata, "n": n}})
        for n, document in enumerate(documents, 1)
        if document.page_content.strip()
    ]
    return [_source(document, reasons=reasons) for document in pack(placed, tokens).kept]


def citable(documents: Sequence[Document]) -> list[int]:
    """The numbers [n] of the documents that have a text: only these can be cited."""
    return [n for n, document in enumerate(documents, 1) if document.page_content.strip()]


def without_own_numbers(text: str) -> str:
    """The text with numbers of its own in round brackets, since square ones would read as citations."""
    return _OWN_NUMBERS.sub(r"(\1)", text)


def _source(placed: Document, *, reasons: bool) -> External:
    """A document as numbered data."""
    text, reason = map(without_own_numbers, (placed.page_content, str(placed.metadata.get(REASON) or "")))
    source = External.of(placed, placed.metadata["n"], text=text)
    return replace(source, reason=reason) if reasons else source


def _searched(documents: Sequence[Document]) -> str | None:
    return "ok" if any(document.metadata.get("origin") == "web" for document in documents) else None
