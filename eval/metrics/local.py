"""Scores that take no model: an answer against what is known about the question."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from crag.base.answer import Answer, ScoredDocument

from ..data.matching import f1, names, phrase, searched
from ..data.records import Row, Sample, Score
from .catalogue import LOCAL
from .loading import engine


@dataclass(frozen=True)
class Outcome:
    """A value, or why there is none; `applies` False says nothing about the row and is no failure."""

    value: float | None
    reason: str | None = None
    applies: bool = True


def _not(reason: str) -> Outcome:
    return Outcome(None, reason, applies=False)


async def local_scores(sample: Sample, row: Row) -> list[Score]:
    """One score for each metric without a judge. Raises SettingsError where ragas is not installed."""
    await asyncio.to_thread(engine)
    return [await _score(name, sample, row) for name in LOCAL]


async def _score(name: str, sample: Sample, row: Row) -> Score:
    if row.answer is None:
        outcome = Outcome(None, "no answer")
    else:
        outcome = await _MEASURES[name](sample, row, row.answer)
    return Score(
        system=row.system,
        id=row.id,
        metric=name,
        value=None if outcome.value is None else round(outcome.value, 6),
        reason=outcome.reason,
        applies=outcome.applies,
    )


def answerable(sample: Sample) -> bool | None:
    """Whether there is an answer to be given; one that is known settles it where nothing is said."""
    if sample.answerable is None and (sample.answers or sample.reference):
        return True
    return sample.answerable


async def _accuracy(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if answerable(sample) is False:
        return Outcome(float(not answer.answered))
    return await _match(sample, row, answer)


async def _match(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not sample.answers or sample.answerable is False:
        return _not("no right answers known")
    if not answer.answered:
        return Outcome(0.0)
    said = phrase(answer.answer)
    for parts in sample.answers:
        if parts and all([await engine().contains(phrase(part), said) for part in parts]):
            return Outcome(1.0)
    return Outcome(0.0)


async def _exact(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not sample.answers or sample.answerable is False:
        return _not("no right answers known")
    said = phrase(answer.answer)
    same = [await engine().exact(phrase(" ".join(parts)), said) for parts in sample.answers]
    return Outcome(float(answer.answered and any(same)))


async def _f1(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not sample.answers or sample.answerable is False:
        return _not("no right answers known")
    if not answer.answered:
        return Outcome(0.0)
    return Outcome(max(f1(" ".join(parts), answer.answer) for parts in sample.answers))


async def _similarity(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not sample.reference or sample.answerable is False:
        return _not("no reference")
    if not answer.answered:
        return Outcome(0.0)
    return Outcome(await engine().similarity(phrase(sample.reference).strip(), phrase(answer.answer).strip()))


async def _refusal_accuracy(sample: Sample, row: Row, answer: Answer) -> Outcome:
    known = answerable(sample)
    return (
        _not("not known whether it can be answered") if known is None else Outcome(answer.answered == known)
    )


async def _refusal_rate(sample: Sample, row: Row, answer: Answer) -> Outcome:
    return Outcome(float(not answer.answered))


async def _groundedness(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not answer.answered:
        return _not("refused")
    if answer.grounded is None:
        return _not("not checked")
    if (answer.grounding_reason or "").startswith("unverified"):
        return Outcome(None, "the check failed")
    return Outcome(float(answer.grounded))


async def _route(sample: Sample, row: Row, answer: Answer) -> Outcome:
    """As `eval/routes.py` has it: what was used, or that nothing was."""
    if sample.in_kb is None:
        return _not("not known whether the knowledge base holds the answer")
    if sample.in_kb:
        return Outcome(float(not searched(answer) and any(d.kept for d in answer.documents)))
    if sample.answerable is False:
        return Outcome(float(not answer.answered))
    # Whether the web knows is not always known; then a refusal may be right as well.
    return Outcome(float(searched(answer) or (sample.answerable is None and not answer.answered)))


async def _gold_retrieved(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not sample.gold_ids:
        return _not("no gold documents known")
    return Outcome(float(any(_gold(document, sample) for document in answer.documents)))


async def _gold_kept(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not sample.gold_ids:
        return _not("no gold documents known")
    found = [document for document in answer.documents if _gold(document, sample)]
    return Outcome(float(any(d.kept for d in found))) if found else _not("no gold document retrieved")


async def _id_precision(sample: Sample, row: Row, answer: Answer) -> Outcome:
    return await _by_id(sample, answer, engine().id_precision)


async def _id_recall(sample: Sample, row: Row, answer: Answer) -> Outcome:
    return await _by_id(sample, answer, engine().id_recall)


async def _by_id(
    sample: Sample, answer: Answer, measure: Callable[[list[str], list[str]], Awaitable[float]]
) -> Outcome:
    if not sample.gold_ids:
        return _not("no gold documents known")
    kept = [_gold(document, sample) or document.id for document in answer.documents if document.kept]
    return Outcome(await measure(kept, sample.gold_ids)) if kept else _empty(answer)


async def _text_precision(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not sample.reference_contexts:
        return _not("no gold texts known")
    if not row.context:
        return _empty(answer)
    return Outcome(await engine().text_precision(row.context, sample.reference_contexts))


async def _text_recall(sample: Sample, row: Row, answer: Answer) -> Outcome:
    if not sample.reference_contexts:
        return _not("no gold texts known")
    if not row.context:
        return _empty(answer)
    return Outcome(await engine().text_recall(row.context, sample.reference_contexts))


def _empty(answer: Answer) -> Outcome:
    """A refusal from nothing is counted as a refusal; an answer from nothing is a row to look at."""
    return Outcome(None, "no context") if answer.answered else _not("refused")


def _gold(document: ScoredDocument, sample: Sample) -> str | None:
    """The gold id that a document answers to."""
    return next((gold for gold in sample.gold_ids if names(gold, document.id, document.source)), None)


_MEASURES: dict[str, Callable[[Sample, Row, Answer], Awaitable[Outcome]]] = {
    "accuracy": _accuracy,
    "answer_match": _match,
    "answer_exact": _exact,
    "answer_f1": _f1,
    "string_similarity": _similarity,
    "refusal_accuracy": _refusal_accuracy,
    "refusal_rate": _refusal_rate,
    "groundedness": _groundedness,
    "route_accuracy": _route,
    "gold_retrieved": _gold_retrieved,
    "gold_kept": _gold_kept,
    "id_based_context_precision": _id_precision,
    "id_based_context_recall": _id_recall,
    "non_llm_context_precision": _text_precision,
    "non_llm_context_recall": _text_recall,
}
