"""Search queries: a question in the few words that a search engine wants. The question itself is kept."""

import re

from crag.base.errors import ModelError
from crag.base.interfaces import Chat, Rewriter
from crag.base.language import han_count, language_of
from crag.base.metering import meter
from crag.models.prompting import prompt
from crag.replies.queries import read_queries, strings
from crag.text.budget import count_tokens, fit_query
from crag.text.sentences import SENTENCE_END

ALTERNATIVES = 3
"""Queries that a correction asks instead of the question."""

PLAIN = 32
"""Tokens of a question that is searched for as it stands: some twenty English words, thirty Chinese signs."""

_QUOTES = "\"'`*“”‘’«»「」『』《》 \t"
_LABEL = re.compile(
    r"^(?:(?:sure|okay|ok|certainly|of course)\b[^:：]{0,60}[:：]"
    r"|here(?:'s|’s| is| are)\b[^:：]{0,60}[:：]"
    r"|(?:the |your |my )?(?:rewritten |search |web |keyword )*(?:query|queries|keywords)"
    r"\s*(?:is\s*)?[*`\"]*[:：]"
    r"|(?:好的|当然|以下是?|这是)[^:：]{0,30}[:：]"
    r"|(?:改写后?的?|搜索|网络|检索)*(?:查询词?|关键词|搜索词|检索词)(?:如下|是|为)?\s*[:：])\s*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^(?:[-*+•]|\d{1,2}[.)、])\s+")
_FENCE = re.compile(r"^```[a-z]*$", re.IGNORECASE)


class KeywordRewriter:
    """An `interfaces.Rewriter`: one model call; failing that the question itself, with a warning."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._prompt = prompt("rewrite")

    async def __call__(self, question: str) -> str:
        """A query of at most LONGEST_QUERY characters."""
        try:
            reply = await self._chat(self._prompt.render(language_of(question), question=question))
        except ModelError as error:
            meter().warn(f"searching with the question itself: {error}")
            return fit_query(question)
        query = _first_query(reply)
        if not query or _translated(question, query):
            why = "translated the question" if query else "wrote no usable query"
            meter().warn(f"searching with the question itself: {self._chat.name} {why}")
            return fit_query(question)
        return fit_query(query)


class SparingRewriter:
    """An `interfaces.Rewriter` that has another rewrite only what is no query as it stands.

    Search services take a short question as well as its keywords, and the call would be one more to wait for.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter

    async def __call__(self, question: str) -> str:
        """The question itself if it is one sentence of at most PLAIN tokens, else the other's query."""
        sentences = [part for part in SENTENCE_END.split(question.strip()) if part.strip()]
        plain = len(sentences) == 1 and count_tokens(question) <= PLAIN
        return fit_query(question) if plain else await self._rewriter(question)


class ModelAlternatives:
    """An `interfaces.Alternatives`: one model call for ALTERNATIVES queries.

    Fewer are not topped up. None at all, or a failure, gives the keywords of the question instead.
    """

    def __init__(self, chat: Chat, rewriter: Rewriter) -> None:
        self._chat = chat
        self._rewriter = rewriter
        self._prompt = prompt("alternatives")

    async def __call__(self, question: str) -> list[str]:
        """At most ALTERNATIVES queries, none of them the question or another one again."""
        messages = self._prompt.render(language_of(question), question=question, count=str(ALTERNATIVES))
        try:
            reply = await self._chat(messages)
        except ModelError as error:
            meter().warn(f"no alternative queries: {error}")
            return []
        queries = distinct(read_queries(reply), question)[:ALTERNATIVES]
        if queries:
            return queries
        meter().warn(f"no alternative queries: {self._chat.name} wrote none; keywords instead")
        return distinct([await self._rewriter(question)], question)


def distinct(queries: list[str], question: str) -> list[str]:
    """Queries without repetitions and without the question, as a search sees them: words alone count."""
    seen = {_words(question), ""}
    unique = []
    for query in queries:
        key = _words(query)
        if key not in seen:
            seen.add(key)
            unique.append(fit_query(query))
    return unique


def _words(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _translated(question: str, query: str) -> bool:
    """Whether a Chinese question became words of another script that it does not hold itself."""
    if language_of(question) != "zh" or han_count(query):
        return False
    known = set(re.findall(r"\w+", question.casefold(), re.ASCII))
    return any(word not in known for word in re.findall(r"[a-z]\w+", query.casefold(), re.ASCII))


def _first_query(reply: str) -> str:
    """The first line of a reply that can be searched for, without labels, bullets and quotes."""
    for line in strings(reply) or reply.splitlines():
        text = "" if _FENCE.match(line.strip()) else line.strip()
        text = _BULLET.sub("", text).strip(_QUOTES)
        while label := _LABEL.match(text):
            text = text[label.end() :].strip(_QUOTES)
        if re.search(r"\w", text):
            return text
    return ""
