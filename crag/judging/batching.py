"""Judgements in batches: all passages of a question, or all their strips, scored by one model call."""

import asyncio
from typing import NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from crag.base.errors import ModelError
from crag.base.interfaces import Chat, Grade, Grader
from crag.base.language import language_of
from crag.base.metering import meter
from crag.judging.grading import unscored
from crag.models.prompting import External, prompt
from crag.replies.score_lists import HIGHEST, LOWEST, read_scores
from crag.text.budget import count_tokens, shares, shorten
from crag.text.sentences import split_strips

KEEP = 3
"""Strips with this score or more, out of 5, are kept."""

PASSAGE_TOKENS = 6000
"""Tokens of all passages together that one call is shown; what short ones leave goes to the longer ones."""

STRIP_TOKENS = 6000
"""Tokens of strips that one call is shown; what is more goes to further calls, side by side."""


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
        read = await _asked(self._chat, messages, count)
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
        read = await _asked(self._chat, messages, len(strips))
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


class _Read(NamedTuple):
    scores: list[float | None]
    why: str  # a score is missing, where one is


async def _asked(chat: Chat, messages: list[BaseMessage], count: int) -> _Read:
    """The scores of one call, or of a second where the first reply held no list; a failure scores nothing."""
    why = f"{chat.name} gave no score"
    for _ in range(2):
        try:
            reply = await chat(messages)
        except ModelError as error:
            return _Read([None] * count, str(error))
        scores = read_scores(reply, count)
        if scores is not None:
            return _Read(scores, why)
        said = " ".join(reply.split())[:80]
        why = f"{chat.name} replied {said!r}" if said else f"{chat.name} said nothing"
    return _Read([None] * count, why)
