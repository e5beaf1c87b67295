"""What a calibration learns from: questions with passages, and whether each passage answers."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from crag.errors import SettingsError
from crag.jsonl import NO_UTF8, json_lines
from crag.language import language_of

from .matching import names, phrase
from .samples import named_after, truth

_PART = re.compile(r"[#:]\d{1,4}$")
LEAST_DOCUMENTS = 5
GOLD_KEYS = ("gold_ids", "gold_kb_ids", "gold_sources")


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


class Labels(NamedTuple):
    """What the files hold; `found` are passages that a benchmark's runs retrieved, by question id."""

    questions: list[LabelledQuestion]
    gold: list[GoldQuestion]
    found: dict[str, list[LabelledPassage]]
    sha256: str


def read_labels(paths: Iterable[Path]) -> Labels:
    """Read label files, question sets and records of a benchmark, told apart by their keys.

    Raises SettingsError, one line naming the file and line that is none of them.
    """
    questions: dict[str, LabelledQuestion] = {}
    gold: dict[str, GoldQuestion] = {}
    found: dict[str, list[LabelledPassage]] = {}
    digest = hashlib.sha256()
    for path in paths:
        for number, row in _rows(path, digest):
            where = f"{path}, line {number}"
            if row.get("kind") in {"provenance", "row", "score"}:
                if row["kind"] == "row" and row.get("answer"):
                    found.setdefault(str(row.get("id")), _retrieved(row["answer"], where))
            elif "passages" in row:
                labelled = _checked(LabelledQuestion, row | {"id": _name(row, where)}, where)
                questions[f"{labelled.id}\0{labelled.question}"] = labelled
            else:
                asked = _gold(row, where)
                # What was retrieved is known by the id, so that another question of that id would get it.
                if gold.setdefault(asked.id, asked).question != asked.question:
                    raise SettingsError(
                        f"{where}: the id {asked.id!r} names another question, too; rename one"
                    )
    return Labels(list(questions.values()), list(gold.values()), found, digest.hexdigest())


def _rows(path: Path, digest: Any) -> Iterable[tuple[int, dict[str, Any]]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    digest.update(data)
    for number, row in json_lines(data):
        if isinstance(row, str):
            remedy = "save the file as UTF-8" if row == NO_UTF8 else "one question a line is an object"
            raise SettingsError(f"{path}, line {number} {row}; {remedy}")
        yield number, row


def _checked(kind: type[LabelledQuestion], row: dict[str, Any], where: str) -> LabelledQuestion:
    passages = row.get("passages")
    if isinstance(passages, list):
        row = row | {
            "passages": [
                {k: str(v) if k in {"id", "source", "title"} else v for k, v in p.items() if v is not None}
                if isinstance(p, dict)
                else p
                for p in passages
            ]
        }
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{where}: {place}: {first['msg'].lower()}") from None


def _name(row: dict[str, Any], where: str) -> str:
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise SettingsError(f'{where} has no "question"')
    return str(row.get("id") or named_after(question.strip()))


def _gold(row: dict[str, Any], where: str) -> GoldQuestion:
    row = row | {"question": row.get("question") or row.get("user_input")}
    named = [str(one) for key in GOLD_KEYS for one in _list(row, key, where)]
    try:
        in_kb = truth(row, "in_kb")
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None
    if not named and in_kb is None:
        raise SettingsError(
            f'{where} has neither "passages" with labels nor "in_kb" or "gold_ids"; see --help for the shapes'
        )
    given = [[one] if isinstance(one, str) else one for one in _list(row, "answers", where)]
    answers = [[str(part) for part in one] for one in given if isinstance(one, list) and one]
    return GoldQuestion(
        id=_name(row, where), question=row["question"], answers=answers, in_kb=in_kb, gold=named
    )


def _list(row: dict[str, Any], key: str, where: str) -> list[Any]:
    """A list, or the one text that stands for it."""
    value = row.get(key) or []
    if not isinstance(value, (list, str)) or any(isinstance(one, dict) for one in value):
        raise SettingsError(f"{where}: {key} is neither a text nor a list")
    return [value] if isinstance(value, str) else value


def _retrieved(answer: dict[str, Any], where: str) -> list[LabelledPassage]:
    try:
        return [
            LabelledPassage(
                id=d["id"], text=d["text"], source=d.get("source") or "", title=d.get("title") or ""
            )
            for d in answer["documents"]
            if d["origin"] == "kb"
        ]
    except (KeyError, TypeError, ValidationError):
        raise SettingsError(f"{where} is no record of a benchmark; give its records.jsonl") from None


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
