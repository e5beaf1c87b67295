"""From a user's own labels to a calibration: read, score, learn, check by cross-validation, warn."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from crag.calibration import CalibratedLine, Calibration, EvaluatorIdentity
from crag.embedded.evaluator import Line, coefficients, shipped_shift
from crag.embedded.features import FEATURES
from crag.embedded.fitting import Table, scores, tabulate
from crag.embedded.vectors import PassageVectors
from crag.errors import SettingsError
from crag.knowledge.embeddings import EmbeddedEmbeddings, embedded_embeddings
from crag.settings import Aggregate, Settings
from crag.thresholds import embedded_identity, model_identity

from .grades import Grades
from .labels import LabelledPassage, LabelledQuestion, Labels, documents, label, languages, question_document
from .learning import HeldOut, Labelled, Learnt, cross_validate, learn
from .thresholds import LOWER, UPPER, ScoredQuestions, Separation, Shares, Wish, separation, shares

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much is done, and of how much."""

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


async def score_embedded(
    questions: Sequence[LabelledQuestion], vectors: PassageVectors, progress: Progress, *, fit: bool = True
) -> Labelled:
    """The labels with the embedded evaluator's features and the scores of its shipped lines."""
    rows = [{"question": q.question, "passages": [p.model_dump() for p in q.passages]} for q in questions]
    table = await tabulate(rows, vectors, lambda done, total: progress("embedding", done, total))
    assert isinstance(vectors.embeddings, EmbeddedEmbeddings)
    found = labelled(questions, table, coefficients(vectors.embeddings.model_id), shipped_shift())
    return found if fit else replace(found, table=None)


def labelled(
    questions: Sequence[LabelledQuestion], table: Table, lines: Mapping[str, Line], shift: float
) -> Labelled:
    """The labels with features of their pairs, scored by the shipped lines."""
    return Labelled(
        table.question,
        table.relevant,
        scores(lines, table),
        *_known(questions),
        table=table,
        lines=lines,
        shift=shift,
    )


def with_scores(questions: Sequence[LabelledQuestion], given: Sequence[Sequence[float | None]]) -> Labelled:
    """The labels with scores that somebody else gave; None is unscored."""
    pairs = [(n, p) for n, q in enumerate(questions) for p in q.passages]
    return Labelled(
        np.array([n for n, _ in pairs], int),
        np.array([-1 if p.relevant is None else int(p.relevant) for _, p in pairs], int),
        np.array([np.nan if s is None else s for row in given for s in row], float),
        *_known(questions),
    )


def _known(questions: Sequence[LabelledQuestion]) -> tuple[Any, list[str], list[str]]:
    of = documents(list(questions))
    answers = [-1 if q.any_answers is None else int(q.any_answers) for q in questions]
    return (
        np.array(answers, int),
        [question_document(q, of) for q in questions],
        [of[p.text] for q in questions for p in q.passages],
    )


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
    report.warnings.extend(_warnings(report, data))
    return report


def _warnings(report: Report, data: Labelled) -> list[str]:
    told = report.data
    found: list[str] = []
    if unknown := int((data.answers < 0).sum()):
        found.append(f"{unknown} questions are left out: it is unknown whether a passage answers them")
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


def retrieved(
    labels: Labels, settings: Settings, vectors: PassageVectors, progress: Progress
) -> list[LabelledQuestion]:
    """The questions of a set with what a benchmark found for them, else what the knowledge base finds now."""
    wanted = [q for q in labels.gold if q.id not in labels.found]
    if labels.found and not labels.gold:
        raise SettingsError("records need their question set; give both: records.jsonl questions.jsonl")
    found = dict(labels.found)
    if wanted:
        from crag.knowledge.passages import settings_embeddings
        from crag.knowledge.retrieval import HybridRetriever
        from crag.knowledge.store import KnowledgeBase

        embeddings = settings_embeddings(settings)
        retriever = HybridRetriever(KnowledgeBase(settings, embeddings), embeddings, vectors)
        for number, question in enumerate(wanted, start=1):
            found[question.id] = [
                LabelledPassage(
                    id=d.id or "",
                    text=d.page_content,
                    source=str(d.metadata.get("source") or ""),
                    title=str(d.metadata.get("title") or ""),
                )
                for d in retriever.retrieve(question.question, settings.k)
            ]
            progress("retrieving", number, len(wanted))
    return [label(question, found[question.id]) for question in labels.gold]


def evaluator_of(settings: Settings) -> EvaluatorIdentity:
    """Who scores documents with these settings. Raises SettingsError where that must be said first."""
    endpoint = settings.endpoint("grader")
    if settings.evaluator == "embedded" or endpoint is None:
        return embedded_identity(embedded_embeddings().model_id)
    if settings.evaluator == "auto":
        raise SettingsError(
            f"with these settings {endpoint.model} grades documents: say --evaluator llm to pay for its "
            "grades (--estimate tells how many), or --evaluator embedded to calibrate the one without a model"
        )
    return model_identity(endpoint.model)


def graded(
    questions: Sequence[LabelledQuestion], grades: Grades, settings: Settings, progress: Progress
) -> Labelled:
    """The labels with the configured grading model's scores. Raises CragError when it grades nothing."""
    from crag.services import Own, build_services

    grader = build_services(settings, Own()).grader
    given = asyncio.run(
        grades.grade(
            questions, grader, lambda done, total: progress("grading", done, total), settings.concurrency
        )
    )
    return with_scores(questions, given)


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
