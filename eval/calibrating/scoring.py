"""Labels become numbers: retrieved where they must be, scored by the evaluator that the settings choose."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crag.base.errors import SettingsError
from crag.base.metering import metered
from crag.embedded.evaluator import Line, coefficients, shipped_shift
from crag.embedded.fitting import Table, scores, tabulate
from crag.encoders.embeddings import EmbeddedEmbeddings, embedded_embeddings
from crag.encoders.passages import PassageVectors
from crag.judging.thresholds import embedded_identity, model_identity
from crag.settings.calibration import EvaluatorIdentity
from crag.settings.settings import Settings

from .grades import Grades
from .label_files import Labels
from .labels import GoldQuestion, LabelledPassage, LabelledQuestion, documents, label, question_document
from .learning import Labelled

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much is done, and of how much."""


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


def retrieved(
    labels: Labels, settings: Settings, vectors: PassageVectors, progress: Progress
) -> list[LabelledQuestion]:
    """The questions of a set with what a benchmark found for them, else what the knowledge base finds now."""
    wanted = [q for q in labels.gold if q.id not in labels.found]
    if labels.found and not labels.gold:
        raise SettingsError("records need their question set; give both: records.jsonl questions.jsonl")
    found = {**labels.found, **_found_now(wanted, settings, vectors, progress)}
    return [label(question, found[question.id]) for question in labels.gold]


def _found_now(
    wanted: Sequence[GoldQuestion], settings: Settings, vectors: PassageVectors, progress: Progress
) -> dict[str, list[LabelledPassage]]:
    """What the knowledge base finds for each question, under the conditions that answers have as well."""
    if not wanted:
        return {}
    from crag.knowledge.passages import settings_embeddings
    from crag.knowledge.retrieval import HybridRetriever
    from crag.knowledge.store.store import KnowledgeBase

    embeddings = settings_embeddings(settings)
    retriever = HybridRetriever(KnowledgeBase(settings, embeddings), embeddings, vectors)
    found = {}
    with metered() as told:
        for number, question in enumerate(wanted, start=1):
            found[question.id] = [
                LabelledPassage(
                    id=d.id or "",
                    text=d.page_content,
                    source=str(d.metadata.get("source") or ""),
                    title=str(d.metadata.get("title") or ""),
                )
                for d in retriever.retrieve(question.question, settings.k, where=settings.where)
            ]
            progress("retrieving", number, len(wanted))
    if told.warnings and not any(found.values()):
        raise SettingsError(f"no question has passages: {told.warnings[0]}")
    return found


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
    from crag.wiring.parts import Own
    from crag.wiring.services import build_services

    grader = build_services(settings, Own()).grader
    given = asyncio.run(
        grades.grade(
            questions, grader, lambda done, total: progress("grading", done, total), settings.concurrency
        )
    )
    return with_scores(questions, given)
