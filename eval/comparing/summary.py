"""Rows and scores into a result: means by system and group, differences, spending, and what to beware of."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from crag.base.metering import NodeUsage

from ..data.records import Difference, Metric, MetricResult, Provenance, Result, Row, Sample, Score, Spending
from ..data.samples import ALL, LANG
from .cautions import cautions, warnings
from .intervals import estimate, finding, noise, paired

_EXCERPT = re.compile(r': ".*"$', re.DOTALL)


def summarise(
    samples: Sequence[Sample],
    rows: Sequence[Row],
    scores: Sequence[Score],
    provenance: Provenance,
    metrics: Sequence[Metric],
    notes: Sequence[str] = (),
) -> Result:
    """The comparison of every system with the first of `provenance.systems`.

    Groups are "all", each `group` of the samples and, where there are two languages, "lang: en" and
    "lang: zh". A row or a score that was written twice counts as it was written last. Repeats of a row are
    averaged before anything else.
    """
    known = {sample.id for sample in samples}
    last = {(row.system, row.id): row for row in rows if row.id in known}
    systems = list(dict.fromkeys([*provenance.systems, *(system for system, _ in last)]))
    table = _Table(last, scores)
    groups = _groups(samples)
    values = [
        table.result(system, metric.name, group, ids)
        for group, ids in groups.items()
        for metric in metrics
        for system in systems
    ]
    differences = [
        table.difference(systems[0], system, metric, group, ids)
        for group, ids in groups.items()
        for metric in metrics
        for system in systems[1:]
    ]
    spending = [_spending(system, list(last.values()), scores) for system in systems]
    return Result(
        provenance=provenance,
        metrics=list(metrics),
        values=values,
        differences=differences,
        spending=spending,
        notes=[
            *notes,
            *warnings(list(last.values())),
            *cautions(len(samples), provenance, metrics, values, differences, spending),
        ],
    )


class _Table:
    """Scores by system, metric and row."""

    def __init__(self, rows: dict[tuple[str, str], Row], scores: Sequence[Score]) -> None:
        self._rows = rows
        last = {(s.system, s.metric, s.id, s.repeat): s for s in scores}
        self._scores: dict[tuple[str, str, str], list[Score]] = defaultdict(list)
        for (system, metric, key, _), score in last.items():
            self._scores[system, metric, key].append(score)

    def _values(self, system: str, metric: str, ids: Sequence[str]) -> dict[str, list[float]]:
        found = {}
        for key in ids:
            repeats = self._scores.get((system, metric, key), [])
            if values := [score.value for score in repeats if score.value is not None]:
                found[key] = values
        return found

    def _means(self, system: str, metric: str, ids: Sequence[str]) -> dict[str, float]:
        values = self._values(system, metric, ids)
        return {key: statistics.fmean(repeats) for key, repeats in values.items()}

    def _unscored(self, system: str, metric: str, ids: Sequence[str]) -> Iterator[str]:
        for key in ids:
            row = self._rows.get((system, key))
            if row is None:
                continue
            repeats = self._scores.get((system, metric, key), [])
            if row.answer is None:
                yield "no answer"
            elif not repeats:
                yield "not scored yet"
            elif all(score.value is None for score in repeats):
                failed = [score.reason or "no reason given" for score in repeats if score.applies]
                if failed:
                    yield _EXCERPT.sub("", failed[-1])

    def result(self, system: str, metric: str, group: str, ids: Sequence[str]) -> MetricResult:
        values = self._values(system, metric, ids)
        return MetricResult(
            system=system,
            metric=metric,
            group=group,
            value=estimate([statistics.fmean(repeats) for repeats in values.values()]),
            scored=len(values),
            unscored=dict(Counter(self._unscored(system, metric, ids)).most_common()),
            noise=noise(list(values.values())),
        )

    def difference(
        self, baseline: str, system: str, metric: Metric, group: str, ids: Sequence[str]
    ) -> Difference:
        value, pairs, chance = paired(
            self._means(baseline, metric.name, ids), self._means(system, metric.name, ids)
        )
        spreads = [noise(list(self._values(s, metric.name, ids).values())) for s in (baseline, system)]
        loudest = max((spread for spread in spreads if spread is not None), default=None)
        return Difference(
            metric=metric.name,
            group=group,
            baseline=baseline,
            system=system,
            value=value,
            pairs=pairs,
            finding=finding(value, pairs, chance, loudest, metric.higher_is_better),
        )


def _groups(samples: Sequence[Sample]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {ALL: [sample.id for sample in samples]}
    for sample in sorted(samples, key=lambda sample: sample.group or ""):
        if sample.group:
            groups.setdefault(sample.group, []).append(sample.id)
    if len({sample.lang for sample in samples}) > 1:
        for sample in sorted(samples, key=lambda sample: sample.lang):
            groups.setdefault(f"{LANG}{sample.lang}", []).append(sample.id)
    return groups


def _spending(system: str, rows: Sequence[Row], scores: Sequence[Score]) -> Spending:
    own = [row for row in rows if row.system == system]
    answers = [row.answer for row in own if row.answer is not None]
    total, nodes = NodeUsage(), Counter[str]()
    for answer in answers:
        total.count(answer.usage)
        nodes.update(answer.timings.by_node)
    seconds = [answer.timings.total_s for answer in answers]
    p50, p95 = np.percentile(seconds, [50, 95]) if seconds else (0.0, 0.0)
    judged = [score for score in scores if score.system == system]
    return Spending(
        system=system,
        questions=len(own),
        errors=len(own) - len(answers),
        **total.counts() | {"cost_usd": _sum_of_known([answer.usage.cost_usd for answer in answers])},
        seconds_p50=round(float(p50), 4),
        seconds_p95=round(float(p95), 4),
        seconds_by_node={node: round(spent / len(answers), 4) for node, spent in nodes.items()},
        verdicts=dict(Counter(answer.verdict for answer in answers if answer.verdict)),
        judge_calls=sum(score.calls for score in judged),
        judge_cost_usd=_sum_of_known([score.cost_usd for score in judged]),
    )


def _sum_of_known(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return round(sum(known), 6) if known else None
