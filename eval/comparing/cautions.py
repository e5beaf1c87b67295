"""What a careful reader of a result must know before believing it, a sentence each."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ..data.records import Difference, Metric, MetricResult, Provenance, Row, Spending
from .intervals import FEWEST

FEW_ROWS = 30
NEARLY_ALL = 0.9
_ENOUGH_VERDICTS = 5


def cautions(
    questions: int,
    provenance: Provenance,
    metrics: Sequence[Metric],
    values: Sequence[MetricResult],
    differences: Sequence[Difference],
    spending: Sequence[Spending],
) -> list[str]:
    """The sentences, most important first; [] when there is nothing to beware of."""
    return [
        *_errors(spending),
        *_unscored(values),
        *_few(questions, differences),
        *_verdicts(spending, values),
        *_judge(provenance, metrics, values),
    ]


def _errors(spending: Sequence[Spending]) -> Iterator[str]:
    for spent in spending:
        if spent.errors:
            yield (
                f"{spent.system} failed on {spent.errors} of {spent.questions} questions; "
                "these are in no mean and no difference"
            )


def warnings(rows: Sequence[Row]) -> list[str]:
    """What most answers of a system warn of: that concerns the comparison, and not one question."""
    told = []
    for system in dict.fromkeys(row.system for row in rows):
        answers = [row.answer for row in rows if row.system == system and row.answer]
        counted = Counter(warning for answer in answers for warning in dict.fromkeys(answer.warnings))
        for warning, count in counted.items():
            if 2 * count > len(answers):
                told.append(f"{count} of {len(answers)} answers of {system} warn: {warning}")
    return told


def _unscored(values: Sequence[MetricResult]) -> Iterator[str]:
    for value in values:
        # Questions that failed are told once, not once for each metric.
        for reason, count in value.unscored.items():
            if value.group == "all" and reason != "no answer":
                rows = sum(value.unscored.values()) + value.scored
                yield f"{value.metric} of {value.system}: {count} of {rows} rows unscored: {reason}"


def _few(questions: int, differences: Sequence[Difference]) -> Iterator[str]:
    if questions < FEW_ROWS:
        yield (
            f"{questions} questions are few: intervals are wide, and a difference on fewer than {FEWEST} of "
            "them is never called better or worse"
        )
    lone = {d.metric for d in differences if d.group == "all" and d.pairs and d.finding == "not comparable"}
    for metric in sorted(lone):
        yield f"{metric}: one row alone was scored in both systems, so they cannot be compared"


def _verdicts(spending: Sequence[Spending], values: Sequence[MetricResult]) -> Iterator[str]:
    # Questions that all have their answer in the knowledge base deserve one verdict.
    right = {
        value.system
        for value in values
        if (value.metric, value.group) == ("route_accuracy", "all")
        and (value.value.mean or 0.0) >= NEARLY_ALL
    }
    for spent in spending:
        total = sum(spent.verdicts.values())
        if total < _ENOUGH_VERDICTS or spent.system in right:
            continue
        verdict, count = max(spent.verdicts.items(), key=lambda item: item[1])
        if count >= NEARLY_ALL * total:
            yield (
                f"{spent.system}: one verdict ({verdict}) covers {count} of {total} runs; its thresholds may "
                "not fit these documents, python -m crag.calibrate finds better ones"
            )


def _judge(
    provenance: Provenance, metrics: Sequence[Metric], values: Sequence[MetricResult]
) -> Iterator[str]:
    judge = provenance.judge.get("model")
    if not judge or not any(metric.judged for metric in metrics):
        return
    writers = [name for name, models in provenance.models.items() if models.get("generator") == judge]
    if writers:
        yield (
            f"the judge {judge} also wrote the answers of {', '.join(writers)}: it judges its own work; "
            "set CRAG_JUDGE_MODEL to another model"
        )
    judged = {metric.name for metric in metrics if metric.judged}
    if not any(value.noise is not None for value in values if value.metric in judged):
        yield (
            "the judge's noise is not known, so differences are held against chance alone; --repeats 3 "
            "measures it"
        )
    embedding = provenance.judge.get("embedding", "")
    if "answer_relevancy" in judged and embedding.startswith("embedded"):
        yield (
            f"answer_relevancy is a cosine of {embedding.removeprefix('embedded: ')}; compare it with no "
            "figure that other embeddings gave"
        )
