"""Choosing upper and lower from scored questions, so that a stated wish holds on new questions.

A new question breaks a threshold that lies below the k-th smallest of n scores with a probability of at most
k / (n + 1), if it is drawn like the n: the finite-sample quantile of conformal prediction (Vovk, Gammerman
and Shafer, "Algorithmic Learning in a Random World", 2005; Lei et al., arXiv 1604.04173, section 2;
Angelopoulos and Bates, arXiv 2107.07511, section 1). k is the largest that keeps this bound within the wish.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .scored import ScoredQuestions, separation, shares

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
