"""Choosing upper and lower from scored questions, so that a stated wish holds on new questions.

A new question breaks a threshold that lies below the k-th smallest of n scores with a probability of at most
k / (n + 1), if it is drawn like the n: the finite-sample quantile of conformal prediction (Vovk, Gammerman
and Shafer, "Algorithmic Learning in a Random World", 2005; Lei et al., arXiv 1604.04173, section 2;
Angelopoulos and Bates, arXiv 2107.07511, section 1). k is the largest that keeps this bound within the wish.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crag.settings import Aggregate

UPPER, LOWER = 0.7, 0.3
"""The defaults of the product, for a side that the labels say nothing about."""


@dataclass(frozen=True)
class Wish:
    """Shares in [0, 1]: of answerable questions that may be lost, of all questions that may search the web.

    `max_web` None: upper is set where answerable and unanswerable questions are told apart best.
    """

    max_lost: float = 0.02
    max_web: float | None = None


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


@dataclass(frozen=True)
class Choice:
    """Thresholds for a wish. `problem` says why the wish cannot be met; the numbers are then the nearest.

    Every `lower` below `lower_below`, and every `upper` up to `upper_up_to` (None: no wish), keeps the wish.
    `lost_bound` and `web_bound` are what holds for new questions on average; `notes` what limits that.
    """

    upper: float
    lower: float
    lower_below: float
    upper_up_to: float | None
    lost_bound: float
    web_bound: float | None
    problem: str | None = None
    notes: list[str] = field(default_factory=list)


def choose(found: ScoredQuestions, wish: Wish) -> Choice:
    """The lower and upper that tell best within the wish; the defaults where those do as well."""
    told = separation(found)
    notes: list[str] = []
    limits = np.sort(found.limit[found.answerable])
    web = np.sort(np.where(np.isnan(found.overall), 0.0, found.overall))
    problem = None
    if not len(limits):
        problem = "no question is answerable, so nothing shows what would be lost"
    elif told.apart is False:
        problem = (
            "answerable and unanswerable questions cannot be separated by these scores: answerable ones "
            f"begin at {told.lowest_answerable:.2f}, unanswerable ones reach "
            f"{told.highest_unanswerable:.2f}, and of two such questions the answerable one scores higher "
            f"in {told.auc:.0%} of pairs (50% is chance)"
        )
    rank, lost_bound = _rank(wish.max_lost, len(limits))
    if lost_bound > wish.max_lost and len(limits):
        notes.append(
            f"{len(limits)} answerable questions promise at most {lost_bound:.1%} lost, not "
            f"{wish.max_lost:.1%}; {_needed(wish.max_lost)}"
        )
    below = float(limits[rank - 1]) if len(limits) else LOWER
    if len(limits) and below <= 0:
        share = float((limits <= 0).mean())
        problem = problem or (
            f"{share:.1%} of the answerable questions score 0 and are lost whatever lower is; "
            f"the wish --max-lost {wish.max_lost:g} cannot be met"
        )
    up_to = web_bound = None
    if wish.max_web is not None:
        rank, web_bound = _rank(wish.max_web, len(web))
        up_to = float(web[rank - 1])
        if web_bound > wish.max_web:
            notes.append(
                f"{len(web)} questions promise web searches on at most {web_bound:.1%}, not "
                f"{wish.max_web:.1%}; {_needed(wish.max_web)}"
            )
        if up_to <= 0:
            problem = problem or (
                f"{float((web <= 0).mean()):.1%} of the questions have no scored passage or score 0 "
                f"and search the web whatever upper is; the wish --max-web {wish.max_web:g} cannot be met"
            )
    finite = found.limit[np.isfinite(found.limit)]
    points = np.unique(np.concatenate([found.overall[~np.isnan(found.overall)], finite, [0.0, 1.0]]))
    points = points[(points >= 0) & (points <= 1)]
    upper = _upper(found, points, up_to)
    lower = _lower(found, _between(*_gap(points, below)))
    if not lower < upper:
        low, high = _gap(points, upper)
        lower, upper = _between(low, high, 1 / 3), _between(low, high, 2 / 3)
    if told.apart and shares(found, upper, lower).gain <= 0:
        problem = problem or (
            f"with web searches on at most {wish.max_web:.1%} of the questions, no upper catches more "
            "unanswerable than answerable ones; allow more with --max-web"
        )
    return Choice(upper, lower, below, up_to, lost_bound, web_bound, problem, notes)


def _rank(share: float, n: int) -> tuple[int, float]:
    """The largest k (at least 1) with k / (n + 1) <= share, and that bound."""
    k = min(n, max(1, math.floor(share * (n + 1) + 1e-9)))
    return k, k / (n + 1)


def _needed(share: float) -> str:
    return f"label at least {math.ceil(1 / share - 1e-9) - 1}" if share > 0 else "nothing promises 0"


def _upper(found: ScoredQuestions, points: Any, up_to: float | None) -> float:
    """Where most unanswerable and fewest answerable questions search the web; the default if as good."""
    told = separation(found)
    gaps = [(low, high) for low, high in itertools.pairwise(points) if up_to is None or high <= up_to]
    if not gaps:
        return float(points[1])
    if told.apart is None:
        # One kind alone shows no best place.
        return min(UPPER, up_to) if up_to is not None else UPPER
    gains = np.array([round(shares(found, (low + high) / 2, -1.0).gain, 9) for low, high in gaps])
    default = shares(found, UPPER, -1.0)
    if (up_to is None or up_to >= UPPER) and default.gain >= gains.max() - default.gain_error / 2:
        return UPPER  # nothing in these labels speaks clearly against it
    best = np.flatnonzero(gains == gains.max())
    # Of equals the widest gap: it leaves new scores most room on both sides.
    return _between(*max((gaps[i] for i in best), key=lambda gap: gap[1] - gap[0]))


def _lower(found: ScoredQuestions, highest: float) -> float:
    """The highest lower that the wish allows; the default if it gives up as many unanswerable questions."""
    scores = found.overall[~found.answerable]
    if highest <= LOWER or not len(scores):
        return min(highest, LOWER)
    given_up = [float((scores <= t).mean()) for t in (LOWER, highest)]
    error = math.sqrt(given_up[0] * (1 - given_up[0]) / len(scores))
    return LOWER if given_up[1] <= given_up[0] + error / 2 else highest


def _gap(points: Any, at: float) -> tuple[float, float]:
    """The neighbours between which `at` lies; the lower one is below it."""
    high = min(len(points) - 1, max(1, int(np.searchsorted(points, at, side="left"))))
    return float(points[high - 1]), float(points[high])


def _between(low: float, high: float, share: float = 0.5) -> float:
    """The number with the fewest digits near `share` of the way from `low` to `high`."""
    exact = low + (high - low) * share
    for digits in range(2, 17):
        value = round(exact, digits)
        if low < value < high and abs(value - exact) <= (high - low) / 8:
            return value
    return exact
