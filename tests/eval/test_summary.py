"""From rows and scores to a result."""

from typing import Any

import pytest
from crag.eval.comparing.summary import summarise
from crag.eval.data.records import Difference, Metric, MetricResult, Provenance, Result, Row, Sample, Score

from crag.base.answer import Timings, Usage
from tests.support.metrics_rows import answer, row, sample

FAITH = Metric(name="faithfulness", meaning="", judged=True)
MATCH = Metric(name="answer_match", meaning="", judged=False)


def provenance(**more: Any) -> Provenance:
    plain: dict[str, Any] = {
        "created": "2026-01-01",
        "dataset": "set.jsonl",
        "dataset_sha256": "0",
        "questions": 3,
        "corpus": "0",
        "web": "off",
        "systems": {"fixed": {}, "crag": {}},
        "models": {},
    }
    return Provenance(**plain | more)


def score(system: str, key: str, value: float | None, **more: Any) -> Score:
    return Score(**{"system": system, "id": key, "metric": "faithfulness", "value": value} | more)


def summed(samples: list[Sample], scores: list[Score], rows: list[Row] | None = None, **more: Any) -> Result:
    if rows is None:
        rows = [row(answer(), key=one.id, system=system) for one in samples for system in ("fixed", "crag")]
    metrics = more.pop("metrics", [FAITH])
    return summarise(samples, rows, scores, provenance(**more), metrics, ["given"])


def value(result: Result, system: str, group: str = "all", metric: str = "faithfulness") -> MetricResult:
    return next(v for v in result.values if (v.system, v.group, v.metric) == (system, group, metric))


def difference(result: Result, group: str = "all") -> Difference:
    return next(d for d in result.differences if d.group == group)


THREE = [sample("1"), sample("2"), sample("3")]


def test_a_row_that_one_system_was_not_scored_on_is_counted_and_compared_for_neither() -> None:
    """F69"""
    prose = 'the judge did not reply with the JSON asked for: "I cannot"'
    result = summed(
        THREE,
        [
            *(score("fixed", key, given) for key, given in (("1", 0.2), ("2", 1.0), ("3", 0.4))),
            *(score("crag", key, given) for key, given in (("1", 0.4), ("3", 0.8))),
            score("crag", "2", None, reason=prose),
        ],
    )
    assert (value(result, "fixed").scored, value(result, "fixed").value.mean) == (
        3,
        pytest.approx(1.6 / 3, abs=1e-6),
    )
    crag = value(result, "crag")
    assert (crag.scored, crag.value.mean) == (2, 0.6)
    assert crag.unscored == {"the judge did not reply with the JSON asked for": 1}
    assert (difference(result).pairs, difference(result).value.mean) == (2, 0.3)
    assert (
        "faithfulness of crag: 1 of 3 rows unscored: the judge did not reply with the JSON asked for"
        in result.notes
    )


def test_rows_that_a_metric_does_not_apply_to_are_in_no_count() -> None:
    """F74"""
    scores = [score("crag", "1", 1.0), score("crag", "2", None, applies=False, reason="refused")]
    crag = value(summed(THREE, scores), "crag")
    assert (crag.scored, crag.value.mean, crag.unscored) == (1, 1.0, {"not scored yet": 1})


def test_a_judge_that_wavers_between_06_and_09_proves_nothing() -> None:
    """F75"""
    wavering = [0.6, 0.9, 0.6]
    samples = [sample(str(n)) for n in range(10)]
    scores = [score("fixed", s.id, v, repeat=n) for s in samples for n, v in enumerate(wavering)]
    scores += [score("crag", s.id, v + 0.1, repeat=n) for s in samples for n, v in enumerate(wavering)]
    result = summed(samples, scores)
    assert value(result, "fixed").noise == pytest.approx(0.173205)
    assert value(result, "fixed").value.mean == 0.7  # repeats are one row's, not three rows
    assert value(result, "fixed").scored == 10
    found = difference(result)
    assert (found.value.mean, found.value.low, found.pairs) == (0.1, 0.1, 10)
    assert found.finding == "within noise"


def test_a_clear_difference_is_called_one() -> None:
    samples = [sample(str(n)) for n in range(20)]
    scores = [score("fixed", s.id, n % 5 / 10) for n, s in enumerate(samples)]
    scores += [score("crag", s.id, 0.6 + n % 4 / 10) for n, s in enumerate(samples)]
    assert difference(summed(samples, scores)).finding == "better"


def test_groups_are_everything_each_group_and_each_language() -> None:
    samples = [
        sample("1", group="in_kb"),
        sample("2", group="nowhere", lang="zh"),
        sample("3", group="in_kb"),
    ]
    scores = [score("crag", "1", 1.0), score("crag", "2", 0.0), score("crag", "3", 0.5)]
    result = summed(samples, scores)
    assert list(dict.fromkeys(v.group for v in result.values)) == [
        "all",
        "in_kb",
        "nowhere",
        "lang: en",
        "lang: zh",
    ]
    assert value(result, "crag", "in_kb").value.mean == 0.75
    assert value(result, "crag", "lang: zh").value.mean == 0.0
    assert {v.group for v in summed(THREE, scores).values} == {"all"}


def test_what_was_written_last_counts() -> None:
    scores = [
        score("crag", "1", None, reason="no reply", again=True, calls=1),
        score("crag", "1", 0.5, calls=2),
    ]
    rows = [row(None, system="crag"), row(answer(), system="crag")]
    result = summed(THREE, scores, rows)
    assert (value(result, "crag").scored, value(result, "crag").unscored) == (1, {})
    spent = result.spending[1]
    assert (spent.system, spent.questions, spent.errors) == ("crag", 1, 0)
    assert spent.judge_calls == 3  # both were paid for


def test_spending_adds_up_and_unknown_tokens_stay_unknown() -> None:
    def one(
        key: str, seconds: float, tokens: int | None, nodes: dict[str, float], verdict: str | None
    ) -> Row:
        usage = Usage(llm_calls=2, input_tokens=tokens, output_tokens=5, web_calls=1, cost_usd=0.25)
        made = answer(usage=usage, timings=Timings(total_s=seconds, by_node=nodes), verdict=verdict)
        return row(made, key=key)

    rows = [
        one("1", 1.0, 10, {"retrieve": 0.4, "score": 0.6}, "correct"),
        one("2", 3.0, None, {"retrieve": 0.6}, "incorrect"),
        row(None, key="3"),
    ]
    spent = summed(THREE, [score("crag", "1", 1.0, cost_usd=0.125, calls=2)], rows).spending[1]
    assert spent.model_dump() == {
        "system": "crag",
        "questions": 3,
        "errors": 1,
        "llm_calls": 4,
        "input_tokens": None,
        "output_tokens": 10,
        "embedding_calls": 0,
        "web_calls": 2,
        "cached_calls": 0,
        "retries": 0,
        "cost_usd": 0.5,
        "seconds_p50": 2.0,
        "seconds_p95": 2.9,
        "seconds_by_node": {"retrieve": 0.5, "score": 0.3},
        "verdicts": {"correct": 1, "incorrect": 1},
        "judge_calls": 2,
        "judge_cost_usd": 0.125,
    }


def test_a_careful_reader_is_told_what_to_beware_of() -> None:
    """F16, F75"""
    samples = [sample(str(n)) for n in range(6)]
    rows = [row(answer(verdict="ambiguous"), key=s.id) for s in samples]
    rows += [row(answer(), key=s.id, system="fixed") for s in samples[:5]] + [
        row(None, key="5", system="fixed")
    ]
    scores = [
        score("crag", "0", 1.0),
        score("fixed", "0", 0.5),
        score("fixed", "5", None, reason="no answer"),
    ]
    result = summed(
        samples[:6],
        [*scores, *(score("crag", str(n), None, reason="no context") for n in range(1, 6))],
        rows,
        models={"fixed": {"generator": "gpt-x"}, "crag": {"generator": "gpt-x"}},
        judge={"model": "gpt-x", "embedding": "embedded: multilingual-e5-small"},
        metrics=[FAITH, Metric(name="answer_relevancy", meaning="", judged=True)],
    )
    notes = "\n".join(result.notes)
    assert result.notes[0] == "given"
    for told in (
        "fixed failed on 1 of 6 questions; these are in no mean and no difference",
        "faithfulness of crag: 5 of 6 rows unscored: no context",
        "6 questions are few: intervals are wide, and a difference on fewer than 6 of them is never called",
        "faithfulness: one row alone was scored in both systems",
        "crag: one verdict (ambiguous) covers 6 of 6 runs; its thresholds may not fit these documents",
        "the judge gpt-x also wrote the answers of fixed, crag: it judges its own work; set CRAG_JUDGE_MODEL",
        "the judge's noise is not known, so differences are held against chance alone; --repeats 3",
        "answer_relevancy is a cosine of multilingual-e5-small; compare it with no figure",
    ):
        assert told in notes
    assert "no answer" not in notes


def test_where_all_is_well_nothing_is_warned_of() -> None:
    samples = [sample(str(n)) for n in range(40)]
    scores = [
        score(system, s.id, 1.0, repeat=n) for s in samples for system in ("fixed", "crag") for n in (0, 1)
    ]
    verdicts = ["correct", "incorrect"] * 20
    rows = [row(answer(verdict=v), key=s.id) for s, v in zip(samples, verdicts, strict=True)]
    rows += [row(answer(), key=s.id, system="fixed") for s in samples]
    result = summed(
        samples,
        scores,
        rows,
        models={"crag": {"generator": "gpt-x"}},
        judge={"model": "gpt-y", "embedding": "e"},
    )
    assert result.notes == ["given"]


def test_nothing_at_all_is_summarised_too() -> None:
    result = summed([], [], [])
    assert value(result, "crag").value.mean is None
    assert difference(result).finding == "not comparable"
    assert [spent.questions for spent in result.spending] == [0, 0]


def test_one_verdict_everywhere_is_no_caution_where_it_is_right_everywhere() -> None:
    samples = [sample(str(n)) for n in range(6)]
    route = Metric(name="route_accuracy", meaning="", judged=False)

    def told(value: float) -> list[str]:
        scores = [score("crag", one.id, value, metric="route_accuracy") for one in samples]
        rows = [row(answer(verdict="correct"), key=one.id, system="crag") for one in samples]
        return [
            note for note in summed(samples, scores, rows, metrics=[route]).notes if "one verdict" in note
        ]

    assert told(1.0) == []
    assert len(told(0.5)) == 1


def test_what_most_answers_of_a_system_warn_of_is_a_note() -> None:
    rows = [
        row(answer(warnings=said), key=key, system=system)
        for system, key, said in (
            ("fixed", "1", ["the web is down"]),
            ("fixed", "2", []),
            ("crag", "1", ["the web is down", "the web is down"]),
            ("crag", "2", ["the web is down"]),
            ("crag", "3", ["a citation was removed"]),
        )
    ]
    notes = summed(THREE, [], rows).notes
    assert notes[:2] == ["given", "2 of 3 answers of crag warn: the web is down"]
    assert not any("citation" in note or "fixed warn" in note for note in notes)
