"""What a calibration learns from: questions with passages, and whether each passage answers."""

import re
from collections import Counter
from collections.abc import Callable

from pydantic import BaseModel

from crag.base.language import language_of

from ..data.matching import names, phrase

_PART = re.compile(r"[#:]\d{1,4}$")
LEAST_DOCUMENTS = 5


class LabelledPassage(BaseModel):
    """A passage and whether it answers; None is unknown, and neither a label nor a loss."""

    id: str = ""
    text: str
    relevant: bool | None = None
    source: str = ""
    title: str = ""


class LabelledQuestion(BaseModel):
    """A question with the passages a retriever brought; `answerable`: whether any of them answers it."""

    id: str
    question: str
    passages: list[LabelledPassage]
    answerable: bool | None = None

    @property
    def any_answers(self) -> bool | None:
        """What is said, else what the passages' labels say, else None: unknown."""
        if self.answerable is not None:
            return self.answerable
        known = [passage.relevant for passage in self.passages]
        return True if True in known else None if None in known else False


class GoldQuestion(BaseModel):
    """A question of which is known which documents hold the answer, or whether the knowledge base does.

    `answers` are alternatives; one of several parts needs all of them.
    """

    id: str
    question: str
    answers: list[list[str]] = []
    in_kb: bool | None = None
    gold: list[str] = []


def label(question: GoldQuestion, passages: list[LabelledPassage]) -> LabelledQuestion:
    """Retrieved passages with what the gold ids say of them.

    A passage of a gold document answers, unless the answers are known and it lacks them all: then that is
    unknown, as it is of a passage that holds an answer and is not gold.
    """
    labelled = [p.model_copy(update={"relevant": _relevant(question, p)}) for p in passages]
    relevant = [p.relevant for p in labelled]
    answerable = None
    if question.in_kb is False:
        answerable = False
    elif question.gold or question.in_kb is None:
        answerable = True if True in relevant else None if None in relevant else False
    elif question.in_kb:
        answerable = True
    return LabelledQuestion(
        id=question.id, question=question.question, passages=labelled, answerable=answerable
    )


def _relevant(question: GoldQuestion, passage: LabelledPassage) -> bool | None:
    if question.in_kb is False:
        return False
    if not question.gold:
        return None
    text = phrase(passage.text)
    holds = any(all(phrase(part) in text for part in answer) for answer in question.answers)
    if any(names(gold, passage.id, passage.source) for gold in question.gold):
        return True if holds or not question.answers else None
    return None if holds else False


def documents(questions: list[LabelledQuestion]) -> dict[str, str]:
    """The document of each passage text: its source, or its id without the number of the part.

    Where these name fewer than LEAST_DOCUMENTS (all records of one file, ids that only end in numbers), each
    passage is a document. Texts that stand in several documents belong to the first.
    """
    passages = [p for question in questions for p in question.passages]
    ways: list[Callable[[LabelledPassage], str]] = [
        lambda p: p.source or _PART.sub("", p.id),
        lambda p: _PART.sub("", p.id),
        lambda p: p.text,
    ]
    found: dict[str, str] = {}
    for way in ways:
        found = {}
        for p in passages:
            found.setdefault(p.text, way(p) or p.text)
        if len(set(found.values())) >= LEAST_DOCUMENTS:
            break
    return found


def question_document(question: LabelledQuestion, of: dict[str, str]) -> str:
    """The document a question is about: that of the passage that answers it, else of its first passage."""
    told = [p for p in question.passages if p.relevant] or question.passages
    return of[told[0].text] if told else question.question


def contradictions(questions: list[LabelledQuestion]) -> int:
    """How many questions have a passage labelled both ways, or one that answers where nothing should."""
    said: dict[str, set[tuple[str, bool]]] = {}
    wrong = set()
    for question in questions:
        labels = said.setdefault(question.question, set())
        labels |= {(p.text, p.relevant) for p in question.passages if p.relevant is not None}
        if question.answerable is False and any(p.relevant for p in question.passages):
            wrong.add(question.question)
    return len(wrong | {q for q, labels in said.items() if len({text for text, _ in labels}) < len(labels)})


def languages(questions: list[LabelledQuestion]) -> dict[str, int]:
    """How many questions there are in each language."""
    return dict(Counter(language_of(question.question) for question in questions))
