"""From a user's own labels to a calibration: read, score, learn, check by cross-validation, warn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from crag.base.choices import Aggregate
from crag.base.wording import counted
from crag.embedded.evaluator import FEATURES
from crag.settings.calibration import CalibratedLine, Calibration, EvaluatorIdentity

from .labels import LabelledQuestion, contradictions, languages
from .learning import HeldOut, Labelled, Learnt, cross_validate, learn
from .scored import ScoredQuestions, Separation, Shares, separation, shares
from .thresholds import LOWER, UPPER, Wish

FEW = 50
"""Answerable or unanswerable questions below which a share is known to ten points at best."""

ONE_SIDED = 0.95


@dataclass(frozen=True)
class Report:
    """What was found. `problem`: why the wish cannot be met; then no calibration should be used.

    `found` are the questions with scores that no fit saw, `chosen`, `before` what the chosen and the default
    thresholds do to them, `held_out` what cross-validation by document found.
    """

    evaluator: EvaluatorIdentity
    wish: Wish
    learnt: Learnt
    found: ScoredQuestions
    told: Separation
    chosen: Shares
    before: Shares
    held_out: HeldOut
    data: dict[str, Any]
    warnings: list[str] = field(default_factory=list)

    @property
    def problem(self) -> str | None:
        """Why the wish cannot be met, or None."""
        return self.learnt.choice.problem

    def calibration(self) -> Calibration:
        """What is written to the file."""
        choice = self.learnt.choice
        lines = {
            name: CalibratedLine(
                weights=[round(float(w), 4) for w in line.weights], intercept=round(float(line.intercept), 4)
            )
            for name, line in self.learnt.lines.items()
        }
        return Calibration.model_validate(
            {
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "evaluator": self.evaluator,
                "upper": choice.upper,
                "lower": choice.lower,
                "aggregate": self.learnt.aggregate,
                "features": list(FEATURES) if lines else [],
                "lines": lines,
                "data": self.data,
                "wish": {"max_lost": self.wish.max_lost, "max_web": self.wish.max_web},
                "figures": self.figures(),
            }
        )

    def figures(self) -> dict[str, Any]:
        """The figures as JSON has them: shares in [0, 1], None where there is nothing to count."""
        choice, fit = self.learnt.choice, self.learnt.fit
        return {
            "auc": _number(self.told.auc),
            "auc_error": _number(self.told.error),
            "single_threshold": list(self.told.gap) if self.told.gap else None,
            "lower_below": _number(choice.lower_below),
            "upper_up_to": choice.upper_up_to,
            "lost_bound": choice.lost_bound,
            "web_bound": choice.web_bound,
            "fit": {"better": fit.better, "why": fit.why},
            "on_these_labels": _shares(self.chosen),
            "cross_validated": _shares(self.held_out.shares) if len(self.held_out.found) else None,
            "default_thresholds": _shares(self.before),
        }


def study(
    data: Labelled,
    questions: Sequence[LabelledQuestion],
    evaluator: EvaluatorIdentity,
    wish: Wish,
    aggregate: Aggregate | None = None,
    about: dict[str, Any] | None = None,
) -> Report:
    """Learn from all labels, and cross-validate the learning."""
    every = np.ones(len(questions), bool)
    learnt = learn(data, every, wish, aggregate)
    found = data.scored(learnt.fit.values, every, learnt.aggregate)
    held_out = cross_validate(data, wish, aggregate)
    chosen = shares(found, learnt.choice.upper, learnt.choice.lower)
    report = Report(
        evaluator=evaluator,
        wish=wish,
        learnt=learnt,
        found=found,
        told=separation(found),
        chosen=chosen,
        before=shares(data.scored(data.fixed, every, "max"), UPPER, LOWER),
        held_out=held_out,
        data={
            **(about or {}),
            "questions": len(questions),
            "answerable": chosen.answerable,
            "unanswerable": chosen.questions - chosen.answerable,
            "passages": len(data.relevant),
            "relevant": int((data.relevant == 1).sum()),
            "irrelevant": int((data.relevant == 0).sum()),
            "documents": len(set(data.about)),
            "languages": languages(list(questions)),
        },
    )
    if wrong := contradictions(list(questions)):
        report.warnings.append(
            f"{wrong} questions contradict themselves: a passage is labelled both ways, or answers a "
            "question that is said to have no answer; mend these labels first"
        )
    report.warnings.extend(_warnings(report, data))
    return report


def _warnings(report: Report, data: Labelled) -> list[str]:
    told = report.data
    found: list[str] = []
    if unknown := int((data.answers < 0).sum()):
        found.append(f"left out, as it is unknown whether a passage answers: {counted(unknown, 'question')}")
    if unscored := int(np.isnan(data.fixed).sum()):
        found.append(f"{unscored} of {len(data.fixed)} passages could not be scored and count for nothing")
    for kind in ("answerable", "unanswerable"):
        if not told[kind]:
            found.append(f"no {kind} question: nothing shows where the other ones end; label some")
        elif told[kind] < FEW:
            found.append(f"only {told[kind]} {kind} questions: shares of them are rough below {FEW}")
    if len(told["languages"]) == 1:
        (language,) = told["languages"]
        other = {"en": "Chinese", "zh": "English"}[language]
        found.append(f"all questions are in one language ({language}); nothing is known for {other} ones")
    if told["documents"] < 4:
        found.append("fewer than 4 documents: cross-validation by document says little")
    found += report.learnt.choice.notes
    for verdict, count in report.chosen.verdicts.items():
        if count > ONE_SIDED * report.chosen.questions:
            found.append(
                f"{count} of {report.chosen.questions} verdicts are {verdict}: nearly nothing decides"
            )
    held = report.held_out.shares if len(report.held_out.found) else None
    if held and held.lost is not None and held.lost > report.wish.max_lost:
        error = (held.lost * (1 - held.lost) / held.answerable) ** 0.5
        if held.lost - 1.645 * error > report.wish.max_lost:
            found.append(
                f"cross-validation by document lost {held.lost:.1%}, more than the wish of "
                f"{report.wish.max_lost:.1%}: other documents are unlike these"
            )
    return found


def fingerprint_of(paths: Sequence[Path], sha256: str) -> dict[str, Any]:
    """Which labels a calibration comes from."""
    return {"files": [path.name for path in paths], "sha256": sha256}


def _number(value: float) -> float | None:
    return None if not np.isfinite(value) else round(float(value), 6)


def _shares(found: Shares) -> dict[str, Any]:
    return {
        "questions": found.questions,
        "answerable": found.answerable,
        "lost": None if found.lost is None else round(found.lost, 4),
        "caught": None if found.caught is None else round(found.caught, 4),
        "web": round(found.web, 4),
        "gain": round(found.gain, 4),
        "verdicts": found.verdicts,
    }
