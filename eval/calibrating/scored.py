"""Scored questions: what thresholds do to them, and how far answerable and unanswerable ones are apart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crag.base.choices import Aggregate


@dataclass(frozen=True)
class ScoredQuestions:
    """One entry a question. `overall`: the aggregate of its passages' scores, NaN if none was scored.

    `limit`: the question is lost from this lower threshold on (infinity: never, as nothing was scored).
    `answerable`: whether any of its passages answers it.
    """

    overall: Any
    limit: Any
    answerable: Any

    def __getitem__(self, mask: Any) -> "ScoredQuestions":
        return ScoredQuestions(self.overall[mask], self.limit[mask], self.answerable[mask])

    def __len__(self) -> int:
        return len(self.overall)


def scored_questions(
    questions: Sequence[tuple[Sequence[float | None], Sequence[bool | None], bool]], aggregate: Aggregate
) -> ScoredQuestions:
    """From (scores of the passages, whether each answers, whether any does) of each question.

    A question is lost if its verdict is incorrect (overall <= lower) or every passage that answers is dropped
    (score < lower); an unscored passage is kept, whatever lower is.
    """
    overall, limit, answerable = [], [], []
    for scores, relevant, any_answers in questions:
        known = [s for s in scores if s is not None]
        total = (max(known) if aggregate == "max" else sum(known) / len(known)) if known else math.nan
        gold = [math.inf if s is None else s for s, r in zip(scores, relevant, strict=True) if r]
        # "Below" drops a passage, "not above" makes a verdict incorrect: the least number above the score.
        dropped = math.nextafter(max(gold), 2) if gold else math.inf
        overall.append(total)
        limit.append(min(dropped, total if known else math.inf))
        answerable.append(any_answers)
    return ScoredQuestions(np.array(overall, float), np.array(limit, float), np.array(answerable, bool))


@dataclass(frozen=True)
class Shares:
    """What thresholds do to a set of questions; a share of nothing is None.

    `lost` of answerable, `caught` of unanswerable questions (the verdict is not correct), `web` of all.
    """

    questions: int
    answerable: int
    lost: float | None
    caught: float | None
    web: float
    verdicts: dict[str, int]

    @property
    def gain(self) -> float:
        """Web searches for unanswerable less those for answerable questions: 1 is perfect, 0 is chance."""
        good = self.questions - self.answerable
        if not good or not self.answerable or self.caught is None:
            return 0.0
        return self.caught - self.in_vain

    @property
    def gain_error(self) -> float:
        """The standard error of the gain."""
        good = self.questions - self.answerable
        if not good or not self.answerable or self.caught is None:
            return 0.0
        variance = self.caught * (1 - self.caught) / good
        return math.sqrt(variance + self.in_vain * (1 - self.in_vain) / self.answerable)

    @property
    def in_vain(self) -> float:
        """The share of answerable questions that search the web."""
        caught = (self.caught or 0.0) * (self.questions - self.answerable)
        return min(1.0, max(0.0, (self.web * self.questions - caught) / self.answerable))


def shares(found: ScoredQuestions, upper: Any, lower: Any) -> Shares:
    """What the thresholds (numbers, or one each per question) do."""
    web = ~(found.overall >= upper)
    incorrect = found.overall <= lower
    yes, no = found.answerable, ~found.answerable
    n = len(found)
    verdicts = {"correct": int((~web).sum()), "incorrect": int(incorrect.sum())}
    verdicts["ambiguous"] = n - sum(verdicts.values())
    return Shares(
        questions=n,
        answerable=int(yes.sum()),
        lost=float((found.limit <= lower)[yes].mean()) if yes.any() else None,
        caught=float(web[no].mean()) if no.any() else None,
        web=float(web.mean()) if n else 0.0,
        verdicts=verdicts,
    )


@dataclass(frozen=True)
class Separation:
    """How well overall scores tell answerable from unanswerable questions: AUC and its standard error.

    `apart` None: there is only one kind. `gap`: the interval (above, up to] of single thresholds that make no
    mistake, if there is any.
    """

    auc: float
    error: float
    apart: bool | None
    gap: tuple[float, float] | None
    lowest_answerable: float
    highest_unanswerable: float


def separation(found: ScoredQuestions) -> Separation:
    """AUC with ties counting half; standard error after Hanley and McNeil (Radiology 143, 1982)."""
    known = ~np.isnan(found.overall)
    yes, no = found.overall[found.answerable & known], found.overall[~found.answerable & known]
    if not len(yes) or not len(no):
        lowest = float(yes.min()) if len(yes) else math.nan
        return Separation(math.nan, math.nan, None, None, lowest, float(no.max()) if len(no) else math.nan)
    auc = float(((yes[:, None] > no).mean() + (yes[:, None] >= no).mean()) / 2)
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (len(yes) - 1) * (q1 - auc**2) + (len(no) - 1) * (q2 - auc**2)
    error = math.sqrt(max(0.0, variance) / (len(yes) * len(no)))
    lowest, highest = float(yes.min()), float(no.max())
    gap = (highest, lowest) if highest < lowest else None
    return Separation(auc, error, auc - 1.645 * error > 0.5, gap, lowest, highest)
