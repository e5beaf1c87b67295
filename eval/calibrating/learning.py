"""What labels teach: lines of the embedded evaluator where they get better, and thresholds for a wish.

Cross-validation goes by document on both sides: a pair of a question and a passage is scored by lines that
saw neither a question about the same document as this question nor a passage of this passage's document.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crag.base.choices import Aggregate
from crag.embedded.evaluator import Line
from crag.embedded.fitting import Table, log_odds, refit, scores

from .scored import ScoredQuestions, Shares, scored_questions, separation, shares
from .thresholds import Choice, Wish, choose

FOLDS = 5
ENOUGH = 20
"""Passages of either kind, relevant and not, from which on a line is fitted; fewer keep the shipped one."""


@dataclass(frozen=True)
class Labelled:
    """Labels as numbers. One entry a pair: `question`, `relevant` (1, 0, -1), `fixed` scores (NaN unscored).

    `table` has the features where the embedded evaluator may be fitted; then `lines` are the shipped ones.
    `about` is the document of each question, `of` that of each pair's passage; `answers` tells for each
    question whether any passage answers it, 1, 0 or -1.
    """

    question: Any
    relevant: Any
    fixed: Any
    answers: Any
    about: Sequence[str]
    of: Sequence[str]
    table: Table | None = None
    lines: Mapping[str, Line] | None = None
    shift: float = 0.0

    def pairs_of(self, questions: Any) -> Any:
        """The mask of the pairs of the questions in a mask."""
        return questions[self.question]

    def scored(self, values: Any, questions: Any, aggregate: Aggregate) -> ScoredQuestions:
        """The questions of a mask, with the scores `values` of all pairs."""
        rows = []
        for number in np.flatnonzero(questions & (self.answers >= 0)):
            own = np.flatnonzero(self.question == number)
            rows.append(
                (
                    [None if np.isnan(values[i]) else float(values[i]) for i in own],
                    [None if self.relevant[i] < 0 else bool(self.relevant[i]) for i in own],
                    bool(self.answers[number]),
                )
            )
        return scored_questions(rows, aggregate)


class Fit(NamedTuple):
    """Whether new lines are better, why, and the scores that were had without seeing what they score.

    `gain` is the fall of the log loss of a passage, both kinds weighing the same, with its standard error
    over documents; None where nothing was fitted.
    """

    better: bool
    why: str
    values: Any
    gain: float | None = None
    error: float | None = None


class Learnt(NamedTuple):
    """Lines to use (empty: the shipped ones), thresholds, and the fit behind them."""

    lines: dict[str, Line]
    aggregate: Aggregate
    choice: Choice
    fit: Fit


def learn(
    data: Labelled, questions: Any, wish: Wish, aggregate: Aggregate | None, *, seed: int = 0
) -> Learnt:
    """From the questions of a mask: lines if they are better, and thresholds on scores they did not see."""
    fit = _fitted(data, questions, seed)
    lines = _lines(data, data.pairs_of(questions)) if fit.better else {}
    best, choice = decide(data, fit.values, questions, wish, aggregate)
    return Learnt(lines, best, choice, fit)


def decide(
    data: Labelled, values: Any, questions: Any, wish: Wish, aggregate: Aggregate | None
) -> tuple[Aggregate, Choice]:
    """Thresholds; the mean only where it tells better than the maximum by more than a standard error."""
    if aggregate:
        return aggregate, choose(data.scored(values, questions, aggregate), wish)
    by_max, by_mean = (data.scored(values, questions, name) for name in ("max", "mean"))
    one, other = choose(by_max, wish), choose(by_mean, wish)
    now, then = shares(by_max, one.upper, one.lower), shares(by_mean, other.upper, other.lower)
    if other.problem is None and then.gain > now.gain + now.gain_error:
        return "mean", other
    return "max", one


class HeldOut(NamedTuple):
    """Questions as a calibration that had not seen their documents treats them; thresholds one each."""

    found: ScoredQuestions
    upper: Any
    lower: Any
    fitted: int  # folds whose lines were better than the shipped ones
    failed: int  # folds where the wish could not be met

    @property
    def shares(self) -> Shares:
        """What became of them."""
        return shares(self.found, self.upper, self.lower)


def cross_validate(
    data: Labelled, wish: Wish, aggregate: Aggregate | None, *, folds: int = FOLDS, seed: int = 0
) -> HeldOut:
    """Calibrate on all folds but one, apply to that one; 2 folds are one half checked on the other."""
    about, of = fold_numbers(data, np.ones(len(data.about), bool), folds, seed)
    parts, upper, lower, fitted, failed = [], [], [], 0, 0
    for fold in range(folds):
        held = about == fold
        if not held.any() or held.all():
            continue
        learnt = learn(data, ~held, wish, aggregate, seed=seed + 1)
        values = data.fixed
        if learnt.fit.better:
            fitted += 1
            values = data.fixed.copy()
            for part in range(folds):
                target = data.pairs_of(held) & (of == part)
                seen = data.pairs_of(~held) & (of != part)
                values[target] = _scores(data, _lines(data, seen))[target]
        failed += learnt.choice.problem is not None
        found = data.scored(values, held, learnt.aggregate)
        parts.append(found)
        upper.append(np.full(len(found), learnt.choice.upper))
        lower.append(np.full(len(found), learnt.choice.lower))
    if not parts:
        return HeldOut(ScoredQuestions(np.array([]), np.array([]), np.array([], bool)), 0.0, 0.0, 0, 0)
    pooled = ScoredQuestions(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("overall", "limit", "answerable"))
    )
    return HeldOut(pooled, np.concatenate(upper), np.concatenate(lower), fitted, failed)


def fold_numbers(data: Labelled, questions: Any, folds: int, seed: int) -> tuple[Any, Any]:
    """The fold of each question and of each pair's passage, by document, folds about equal in questions."""
    count = Counter(data.about[i] for i in np.flatnonzero(questions).tolist())
    count.update(dict.fromkeys(data.of, 0))
    names = sorted(count)
    random.Random(seed).shuffle(names)
    room = [0] * folds
    placed: dict[str, int] = {}
    for name in names:
        # Documents that no question is about are spread too, as their passages are pairs.
        fold = min(range(folds), key=room.__getitem__) if count[name] else len(placed) % folds
        placed[name] = fold
        room[fold] += count[name]
    return np.array([placed[name] for name in data.about]), np.array([placed[name] for name in data.of])


def _fitted(data: Labelled, questions: Any, seed: int) -> Fit:
    table, pairs = data.table, data.pairs_of(questions)
    if table is None:
        return Fit(False, "a grading model is not fitted", data.fixed)
    known = pairs & (data.relevant >= 0) & table.comparable
    counts = {kind: int((data.relevant[known] == kind).sum()) for kind in (1, 0)}
    if min(counts.values()) < ENOUGH:
        return Fit(
            False,
            f"{counts[1]} relevant and {counts[0]} irrelevant passages; {ENOUGH} of each are enough",
            data.fixed,
        )
    about, of = fold_numbers(data, questions, FOLDS, seed)
    values = data.fixed.copy()
    odds = np.zeros(len(values))
    for fold in range(FOLDS):
        for part in range(FOLDS):
            target = pairs & (about[data.question] == fold) & (of == part)
            if target.any():
                lines = _lines(data, pairs & (about[data.question] != fold) & (of != part))
                values[target] = _scores(data, lines)[target]
                odds[target] = _odds(data, lines)[target]
    gain, error = _fall(data, known, _odds(data, {}), odds)
    told = f"cross-validation: log loss falls by {gain:.3f} ± {error:.3f}"
    if gain <= error:
        return Fit(False, f"{told}, which is not clear", data.fixed, gain, error)
    before, after = (separation(data.scored(v, questions, "max")).auc for v in (data.fixed, values))
    if after < before - 0.005:
        return Fit(False, f"answerable questions are told worse (AUC {before:.3f} → {after:.3f})", data.fixed)
    return Fit(True, told, values, gain, error)


def _fall(data: Labelled, known: Any, before: Any, after: Any) -> tuple[float, float]:
    """How much the balanced log loss falls, and the standard error of that over documents."""
    y = data.relevant[known]
    weight = np.where(y == 1, 0.5 / (y == 1).sum(), 0.5 / (y == 0).sum())
    sign = np.where(y == 1, -1.0, 1.0)
    loss = [np.logaddexp(0, sign * (odds[known] - data.shift)) for odds in (before, after)]
    fall = weight * (loss[0] - loss[1])
    groups: Counter[str] = Counter()
    for number, value in zip(data.question[known], fall, strict=True):
        groups[data.about[number]] += value
    parts = np.array(list(groups.values()))
    error = float(np.sqrt(len(parts) / max(1, len(parts) - 1) * ((parts - parts.mean()) ** 2).sum()))
    return float(fall.sum()), error


def _lines(data: Labelled, pairs: Any) -> dict[str, Line]:
    """Refitted lines for those kinds of pairs of which there are enough labels."""
    table, shipped = data.table, data.lines or {}
    assert table is not None
    lines = {}
    for name, line in shipped.items():
        mask = pairs & (data.relevant >= 0) & table.comparable & (table.cross == (name == "cross"))
        y = data.relevant[mask]
        # Folds hold a part of the labels; half of what is enough in all is enough there.
        if min((y == 1).sum(), (y == 0).sum()) >= ENOUGH // 2:
            lines[name] = refit(line, table.values[mask], y, shift=data.shift)
    return lines


def _scores(data: Labelled, lines: Mapping[str, Line]) -> Any:
    assert data.table is not None
    return scores({**(data.lines or {}), **lines}, data.table)


def _odds(data: Labelled, lines: Mapping[str, Line]) -> Any:
    assert data.table is not None
    every = {**(data.lines or {}), **lines}
    return np.where(
        data.table.cross,
        log_odds(every["cross"], data.table.values),
        log_odds(every["same"], data.table.values),
    )
