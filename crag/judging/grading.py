"""Relevance: a score for each document, a verdict on all of them, and which documents it keeps."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from crag.base.choices import Aggregate
from crag.base.errors import ModelError
from crag.base.interfaces import Chat, Grade, Grader, Verdict
from crag.base.language import language_of
from crag.base.metering import meter
from crag.models.prompting import External, prompt
from crag.replies.judgements import read_judgement
from crag.replies.score_lists import HIGHEST, LOWEST, read_scores
from crag.replies.scores import read_score
from crag.text.budget import shares, shorten

PASSAGE_TOKENS = 6000
"""Tokens of all passages together that one call is shown; what short ones leave goes to the longer ones."""

LONGEST_DOCUMENT = 4000
"""Tokens of a document that its grader sees."""


@dataclass(frozen=True)
class Thresholds:
    """Where a score begins to be trusted (`upper`) and ceases to be worth anything (`lower`), both in [0, 1].

    The rule of Corrective RAG (arXiv 2401.15884, section 4.3); the paper aggregates by the maximum.
    """

    upper: float = 0.7
    lower: float = 0.3
    aggregate: Aggregate = "max"

    def verdict(self, scores: list[float | None]) -> tuple[Verdict, float | None]:
        """The verdict on a retrieval and its overall score.

        score >= upper is correct, score <= lower is incorrect, as the floats compare. None (unscored) never
        counts. Documents of which none could be scored are ambiguous, no documents at all incorrect.
        """
        known = [score for score in scores if score is not None]
        if not known:
            return ("ambiguous" if scores else "incorrect"), None
        overall = max(known) if self.aggregate == "max" else sum(known) / len(known)
        if overall >= self.upper:
            return "correct", overall
        return ("incorrect" if overall <= self.lower else "ambiguous"), overall


def keep(documents: list[Document], grades: Mapping[str, Grade], lower: float) -> list[Document]:
    """Documents with score >= lower, best first, then the unscored ones; equals stay in their order.

    Unscored documents are kept, because nothing says that they are bad, and last, because nothing says
    that they are good.
    """
    scored: list[tuple[float, Document]] = []
    unscored: list[Document] = []
    for document in documents:
        grade = grades.get(document.id or "")
        score = grade["score"] if grade else None
        if score is None:
            unscored.append(document)
        elif score >= lower:
            scored.append((score, document))
    scored.sort(key=lambda pair: -pair[0])
    return [document for _, document in scored] + unscored


def number_alone(reply: str) -> Grade | None:
    """The grade of a reply that is to be one number."""
    score = read_score(reply)
    return None if score is None else Grade(score=score, reason=None)


class LLMGrader:
    """An `interfaces.Grader`: one model call per document.

    `call` names the prompt; `read` makes a grade of the reply, or None when it cannot be read.
    """

    def __init__(
        self, chat: Chat, *, call: str = "grade", read: Callable[[str], Grade | None] = number_alone
    ) -> None:
        self._chat = chat
        self._prompt = prompt(call)
        self._read = read

    async def __call__(self, question: str, document: Document) -> Grade:
        """The score, or no score with the reason why."""
        shown = External.of(document, text=shorten(document.page_content, LONGEST_DOCUMENT))
        try:
            reply = await self._chat(
                self._prompt.render(language_of(question), question=question, document=shown)
            )
        except ModelError as error:
            return unscored(str(error))
        said = " ".join(reply.split())[:80]
        return self._read(reply) or unscored(
            f"{self._chat.name} replied {said!r}" if said else f"{self._chat.name} said nothing"
        )


def unscored(why: str) -> Grade:
    """The grade of a document that could not be graded, noted as a warning."""
    meter().warn(f"unscored document: {why}")
    return Grade(score=None, reason=f"unscored: {why}")


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


def as_unit(score: float) -> float:
    """A score from 1 to 5 as one from 0 to 1: 1 → 0, 2 → .25, 3 → .5, 4 → .75, 5 → 1."""
    return (score - LOWEST) / (HIGHEST - LOWEST)


class BatchGrader:
    """An `interfaces.PassageGrader`: one model call for all passages, each scored from 1 to 5.

    A reply in which no list can be read is asked for once more.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._prompt = prompt("grade_batch")

    async def __call__(self, question: str, documents: list[Document]) -> list[Grade]:
        """The grades in the order of the documents."""
        room = shares([document.page_content for document in documents], PASSAGE_TOKENS)
        passages = [
            External.of(document, n, text=shorten(document.page_content, share))
            for n, (document, share) in enumerate(zip(documents, room, strict=True), 1)
        ]
        count = len(documents)
        messages = self._prompt.render(
            language_of(question), question=question, passages=passages, count=str(count)
        )
        read = await asked_scores(self._chat, messages, count)
        return [
            unscored(read.why) if score is None else Grade(score=as_unit(score), reason=None)
            for score in read.scores
        ]


class EachGrader:
    """An `interfaces.PassageGrader` that lets a grader of single documents grade them side by side."""

    def __init__(self, grader: Grader) -> None:
        self._grader = grader

    async def __call__(self, question: str, documents: list[Document]) -> list[Grade]:
        """The grades in the order of the documents."""
        return await asyncio.gather(*(self._grader(question, document) for document in documents))


class Scores(NamedTuple):
    """The scores of one call, None where one is missing, and why it is."""

    scores: list[float | None]
    why: str  # a score is missing, where one is


async def asked_scores(chat: Chat, messages: list[BaseMessage], count: int) -> Scores:
    """The scores of one call, or of a second where the first reply held no list; a failure scores nothing."""
    why = f"{chat.name} gave no score"
    for _ in range(2):
        try:
            reply = await chat(messages)
        except ModelError as error:
            return Scores([None] * count, str(error))
        scores = read_scores(reply, count)
        if scores is not None:
            return Scores(scores, why)
        said = " ".join(reply.split())[:80]
        why = f"{chat.name} replied {said!r}" if said else f"{chat.name} said nothing"
    return Scores([None] * count, why)
