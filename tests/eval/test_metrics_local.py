"""Scores without a model, through ragas's own measures where it has them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from crag.eval.data.records import Sample, Score
from crag.eval.metrics import judge_calls, local_scores, metrics

from crag.base.answer import Answer
from crag.base.errors import SettingsError
from crag.settings.settings import Settings
from tests.support.metrics_rows import answer, document, refusal, row, sample

ROOT = Path(__file__).parents[2]


async def scored(given: Sample, made: Answer | None, context: list[str] | None = None) -> dict[str, Score]:
    return {score.metric: score for score in await local_scores(given, row(made, context))}


async def value(name: str, given: Sample, made: Answer | None) -> float | str | None:
    score = (await scored(given, made))[name]
    return score.value if score.applies else f"does not apply: {score.reason}"


@pytest.mark.parametrize(
    ("said", "match", "exact"),
    [
        ("At noon [1].", 1, 0),
        ("Noon", 1, 1),
        ("12 o'clock by the clock", 1, 0),
        ("By the clock", 0, 0),
        ("In the afternoon", 0, 0),
    ],
)
async def test_an_answer_matches_when_all_parts_of_one_alternative_are_in_it(
    said: str, match: float, exact: float
) -> None:
    given = sample(answers=[["noon"], ["12", "clock"]])
    scores = await scored(given, answer(said))
    assert (scores["answer_match"].value, scores["answer_exact"].value) == (match, exact)


async def test_a_chinese_answer_matches_by_characters() -> None:
    given = sample(answers=["卡伦金人"], lang="zh")
    scores = await scored(given, answer("主要是卡伦金人。"))
    assert scores["answer_match"].value == 1
    assert scores["answer_f1"].value == pytest.approx(2 * 4 / (4 + 7), abs=1e-6)


@pytest.mark.parametrize(
    ("answerable", "made", "accuracy", "refused_rightly"),
    [
        (True, answer("noon"), 1, 1),
        (True, answer("midnight"), 0, 1),
        (True, refusal(), 0, 0),
        (False, refusal(), 1, 1),
        (False, answer("noon"), 0, 0),
    ],
)
async def test_a_refusal_is_right_where_there_is_no_answer_and_wrong_where_there_is(
    answerable: bool, made: Answer, accuracy: float, refused_rightly: float
) -> None:
    """F74"""
    given = sample(answers=["noon"] if answerable else [], answerable=answerable)
    scores = await scored(given, made)
    assert scores["accuracy"].value == accuracy
    assert scores["refusal_accuracy"].value == refused_rightly
    assert scores["refusal_rate"].value == float(not made.answered)


async def test_a_refusal_that_repeats_the_answer_is_still_no_answer() -> None:
    made = answer("Nothing was found about noon.", answered=False)
    assert await value("answer_match", sample(answers=["noon"]), made) == 0


OFF = {"path": ["retrieve", "web_search"], "path_text": "retrieve(1) → web_search(off) → generate"}


@pytest.mark.parametrize(
    ("in_kb", "answerable", "made", "right"),
    [
        (True, True, answer(documents=[document("a")]), 1),
        (True, True, answer(documents=[document("a")], path=["retrieve", "web_search"]), 0),
        (True, True, answer(documents=[document("a")], **OFF), 1),
        (False, True, answer(documents=[document("a")], **OFF), 0),
        (True, True, refusal(documents=[document("a", kept=False)]), 0),
        (False, True, answer(documents=[document("a")]), 0),
        (False, True, answer(documents=[document("a"), document("w", origin="web")]), 1),
        (False, True, refusal(documents=[document("a")]), 0),
        (False, True, refusal(path=["retrieve", "web_search"]), 1),
        (False, None, refusal(documents=[document("a")]), 1),
        (False, False, answer(path=["retrieve", "web_search"]), 0),
        (False, False, refusal(path=["retrieve", "web_search"]), 1),
    ],
)
async def test_the_route_is_right_when_only_what_knows_is_used(
    in_kb: bool, answerable: bool | None, made: Answer, right: float
) -> None:
    assert await value("route_accuracy", sample(in_kb=in_kb, answerable=answerable), made) == right


@pytest.mark.parametrize(
    ("documents", "retrieved", "kept"),
    [
        ([document("g"), document("x")], 1, 1),
        ([document("g", kept=False), document("x")], 1, 0),
        ([document("g#2"), document("x")], 1, 1),
        ([document("h1", source="/data/kb/tides.md")], 1, 1),
        ([document("x")], 0, "does not apply: no gold document retrieved"),
        ([document("gg"), document("h", source="/data/kb/spring-tides.md")], 0, None),
    ],
)
async def test_a_gold_document_is_known_by_id_part_or_source(
    documents: list, retrieved: float, kept: float | str | None
) -> None:
    given = sample(gold_ids=["g", "tides.md"])
    made = answer(documents=documents)
    assert await value("gold_retrieved", given, made) == retrieved
    if kept is not None:
        assert await value("gold_kept", given, made) == kept


async def test_context_metrics_by_id_and_by_text_are_those_of_ragas() -> None:
    given = sample(gold_ids=["a", "b"], reference_contexts=["spring tides twice a month", "ferry at seven"])
    made = answer(documents=[document("x"), document("a"), document("b", kept=False)])
    scores = await scored(given, made, ["gulls on cliffs", "spring tides, twice a month"])
    assert scores["id_based_context_precision"].value == 0.5
    assert scores["id_based_context_recall"].value == 0.5
    assert scores["non_llm_context_precision"].value == 0.5  # the second of two: (1/2) / 1
    assert scores["non_llm_context_recall"].value == 0.5


async def test_nothing_in_the_context_is_flagged_for_an_answer_and_excused_for_a_refusal() -> None:
    """F74"""
    given = sample(gold_ids=["a"], reference_contexts=["noon"])
    invented = (await scored(given, answer("noon")))["non_llm_context_recall"]
    assert (invented.value, invented.applies, invented.reason) == (None, True, "no context")
    refused = (await scored(given, refusal()))["id_based_context_recall"]
    assert (refused.value, refused.applies, refused.reason) == (None, False, "refused")


async def test_groundedness_counts_checked_answers_alone() -> None:
    assert await value("groundedness", sample(), answer(grounded=True)) == 1
    assert (
        await value("groundedness", sample(), answer(grounded=False, grounding_reason="[1] says less")) == 0
    )
    assert await value("groundedness", sample(), answer()) == "does not apply: not checked"
    failed = answer(grounded=False, grounding_reason="unverified: no reply within 60 s")
    score = (await scored(sample(), failed))["groundedness"]
    assert (score.value, score.applies, score.reason) == (None, True, "the check failed")


async def test_a_question_that_failed_is_unscored_everywhere() -> None:
    scores = await scored(sample(answers=["noon"], answerable=True, in_kb=True), None)
    assert {(score.value, score.reason) for score in scores.values()} == {(None, "no answer")}


async def test_what_is_not_known_about_a_question_is_not_measured() -> None:
    scores = await scored(sample(), answer())
    assert [name for name, score in scores.items() if score.applies] == ["refusal_rate"]


def test_ragas_is_known_to_one_module_and_loaded_by_the_first_score_alone() -> None:
    ours = [path for folder in ("crag", "eval", "graphs") for path in (ROOT / folder).rglob("*.py")]
    pattern = re.compile(r"^\s*(?:import|from) ragas", re.MULTILINE)
    assert [path.name for path in ours if pattern.search(path.read_text("utf-8"))] == ["engine.py"]
    program = "import sys, crag.eval.metrics; print(sorted({'ragas', 'openai', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60)
    assert done.stdout == "[]\n"


def plain(**more: str) -> Settings:
    return Settings(_env_file=None, **more)


def test_judged_metrics_are_there_when_a_judge_is() -> None:
    alone = [metric.name for metric in metrics(plain(), None)]
    assert "accuracy" in alone
    assert "faithfulness" not in alone
    assert [m.name for m in metrics(plain(judge_base_url="http://127.0.0.1:1/v1"), None) if m.judged] == [
        "context_recall",
        "context_precision",
        "faithfulness",
        "answer_relevancy",
    ]


def test_an_unknown_metric_and_a_judged_one_without_a_judge_are_refused() -> None:
    with pytest.raises(SettingsError, match="'faithfullness'; did you mean faithfulness"):
        metrics(plain(), ["faithfullness"])
    with pytest.raises(SettingsError, match="faithfulness: a model must judge; set CRAG_JUDGE_MODEL"):
        metrics(plain(), ["accuracy", "faithfulness"])


def test_the_calls_of_a_judge_are_known_beforehand() -> None:
    names = ["context_recall", "context_precision", "faithfulness", "answer_relevancy", "accuracy"]
    assert [judge_calls(name, 4) for name in names] == [1, 4, 2, 3, 0]
