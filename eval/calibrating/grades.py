"""Grades that were paid for, kept in a file so that nobody pays for one twice."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from langchain_core.documents import Document

from crag.base.errors import CragError, SettingsError
from crag.base.files import cut_half_line, json_lines
from crag.base.interfaces import Grader
from crag.judging.grading import LONGEST_DOCUMENT
from crag.models.prompting import fingerprint, prompt
from crag.settings.calibration import EvaluatorIdentity
from crag.text.budget import count_tokens, shorten

from .labels import LabelledPassage, LabelledQuestion

TRIALS = 3
"""Calls that are made one by one first: if none gives a score, the rest would be paid for in vain."""


class Price(NamedTuple):
    """An estimate: calls that are not in the file yet, tokens they read, dollars if prices are set."""

    calls: int
    known: int
    input_tokens: int
    dollars: float | None


class Grades:
    """Scores by question and passage of one grading model and prompt; each is written as it comes.

    Only scores are kept: what could not be graded is asked for again the next time.
    """

    def __init__(self, path: Path, evaluator: EvaluatorIdentity) -> None:
        """Read what the file holds for this evaluator. Raises SettingsError for a file that is no such."""
        assert evaluator.prompt == fingerprint("grade")
        self._path = path
        self._evaluator = evaluator
        self._known: dict[str, float] = {}
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise SettingsError(
                f"the grades {path} cannot be read ({error}); name another --grades"
            ) from None
        for number, row in json_lines(content):
            if isinstance(row, str):
                continue  # cut short by a crash; it is asked for again
            if not isinstance(row.get("key"), str) or not _is_score(row.get("score")):
                raise SettingsError(f"{path}, line {number} is no grade; name another --grades")
            self._known[row["key"]] = float(row["score"])

    def missing(self, questions: Sequence[LabelledQuestion]) -> list[tuple[str, LabelledPassage]]:
        """The pairs that must be graded, each once."""
        pairs = {self._key(q.question, p): (q.question, p) for q in questions for p in q.passages}
        return [pair for key, pair in pairs.items() if key not in self._known]

    def price(self, questions: Sequence[LabelledQuestion], per_million: float | None) -> Price:
        """What grading the rest will take; the reply is a number and costs next to nothing."""
        missing = self.missing(questions)
        around = sum(
            count_tokens(str(m.content)) for m in prompt("grade").render("en", question="", document="")
        )
        tokens = sum(
            around + count_tokens(question) + count_tokens(shorten(p.text, LONGEST_DOCUMENT))
            for question, p in missing
        )
        dollars = None if per_million is None else tokens * per_million / 1_000_000
        return Price(len(missing), len(self._known), tokens, dollars)

    async def grade(
        self,
        questions: Sequence[LabelledQuestion],
        grader: Grader,
        progress: Callable[[int, int], None],
        at_once: int,
    ) -> list[list[float | None]]:
        """The scores of each question's passages, None for unscored. Raises CragError when nothing works."""
        missing = self.missing(questions)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        cut_half_line(self._path)
        reasons: list[str] = []
        done = 0
        turn = asyncio.Semaphore(at_once)

        async def one(question: str, passage: LabelledPassage) -> None:
            nonlocal done
            document = Document(
                passage.text, id=passage.id, metadata={"title": passage.title, "source": passage.source}
            )
            async with turn:
                grade = await grader(question, document)
            if grade["score"] is None:
                reasons.append(grade["reason"] or "unscored")
            else:
                await asyncio.to_thread(self._keep, question, passage, grade["score"])
            done += 1
            progress(done, len(missing))

        for pair in missing[:TRIALS]:
            await one(*pair)
        if missing and len(reasons) == len(missing[:TRIALS]):
            raise CragError(f"no passage could be graded: {reasons[0].removeprefix('unscored: ')}")
        await asyncio.gather(*(one(*pair) for pair in missing[TRIALS:]))
        return [[self._known.get(self._key(q.question, p)) for p in q.passages] for q in questions]

    def _keep(self, question: str, passage: LabelledPassage, score: float) -> None:
        key = self._key(question, passage)
        self._known[key] = score
        row = {"key": key, "score": score, "model": self._evaluator.model, "question": question[:200]}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _key(self, question: str, passage: LabelledPassage) -> str:
        asked = [
            self._evaluator.model,
            self._evaluator.prompt,
            question,
            passage.title,
            passage.source,
            passage.text,
        ]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def _is_score(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
