"""Agentic judgements: a document graded by a reason first and a score after it, and other ways to ask."""

from crag.base.errors import ModelError
from crag.base.interfaces import Chat, Grade, Rewriter
from crag.base.language import language_of
from crag.base.metering import meter
from crag.judging.grading import LLMGrader
from crag.models.prompting import prompt
from crag.replies.judgements import read_judgement
from crag.replies.queries import read_queries
from crag.text.budget import fit_query

ALTERNATIVES = 3
"""Queries that a correction asks instead of the question."""


def reason_grader(chat: Chat) -> LLMGrader:
    """A grader that asks for the reason before the score, which makes the score follow from it."""
    return LLMGrader(chat, call="grade_reason", read=read_grade)


def read_grade(reply: str) -> Grade | None:
    """The grade in a reply, its reason marked where words left the score open; None for no judgement."""
    judged = read_judgement(reply)
    if judged is None:
        return None
    if not judged.ambiguous:
        return Grade(score=judged.score, reason=judged.reason)
    return Grade(score=judged.score, reason=f"ambiguous: {judged.reason}" if judged.reason else "ambiguous")


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
