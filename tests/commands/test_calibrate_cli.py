"""`crag.calibrate` from labels to a file that answers use: embedded, by a model, from question sets."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from crag.eval.calibrating.grades import Grades
from crag.eval.calibrating.label_files import read_labels
from crag.eval.calibrating.labels import LabelledPassage, LabelledQuestion
from langchain_core.documents import Document

from crag import Settings, calibrate
from crag.base.errors import SettingsError
from crag.base.interfaces import Grade
from crag.judging.thresholds import model_identity
from crag.knowledge.ingestion import ingest
from crag.settings.calibration import load_calibration
from tests.support import labels
from tests.support.openai_server import OpenAIServer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith(("CRAG_", "OPENAI_"))]:
        monkeypatch.delenv(name)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = calibrate.main(arguments)
    out, err = capsys.readouterr()
    return status, out, err


def test_labels_in_both_languages_become_a_calibration_and_a_page(tmp_path, capsys):
    file = str(labels.write(tmp_path / "标注.jsonl", labels.rows()))
    status, out, err = run(capsys, file)
    assert (status, err) == (0, "")
    assert out.endswith("CRAG_CALIBRATION=.crag/calibration.json\n")
    assert "10 answerable questions promise at most 9.1% lost, not 2.0%; label at least 49" in out
    assert "shipped coefficients kept: 10 relevant and 70 irrelevant passages; 20 of each are enough" in out
    written = load_calibration(Path(".crag/calibration.json"))
    assert written.evaluator.kind == "embedded"
    assert (written.upper, written.lower, written.lines) == (0.7, 0.3, {})
    assert written.data["languages"] == {"en": 10, "zh": 10}
    assert written.figures["cross_validated"]["lost"] == 0.0
    page = Path(".crag/calibration.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "http://" not in page.replace("http://www.w3.org/", "")


def test_json_holds_the_figures_and_the_line_to_set(tmp_path, capsys):
    file = str(labels.write(tmp_path / "l.jsonl", labels.rows()))
    status, out, _ = run(capsys, file, "--json", "--no-plot", "--max-lost", "0.1", "--out", "c.json")
    told = json.loads(out)
    assert status == 0
    assert told["use"] == ["CRAG_CALIBRATION=c.json"]
    assert told["problem"] is None
    assert told["plot"] is None
    assert told["figures"]["lost_bound"] == pytest.approx(1 / 11)
    assert set(told["figures"]["on_these_labels"]) >= {"lost", "caught", "web", "verdicts"}


def test_a_model_is_paid_once_for_each_grade(tmp_path, capsys, monkeypatch):
    rows = labels.rows()
    right = {row["question"]: row["passages"][0]["text"] for row in rows if row["id"].endswith("+")}

    def reply(messages: list[dict[str, Any]]) -> str:
        asked = messages[-1]["content"]
        return "0.9" if any(q in asked and text in asked for q, text in right.items()) else "0.2"

    file = str(labels.write(tmp_path / "l.jsonl", rows))
    with OpenAIServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("CRAG_MODEL", "small-1")
        status, _, err = run(capsys, file)
        assert (status, len(server.chats)) == (2, 0)
        assert "say --evaluator llm to pay for its grades" in err
        monkeypatch.setenv("CRAG_PRICE_INPUT", "1000")
        status, _, err = run(capsys, file, "--evaluator", "llm", "--estimate")
        assert (status, len(server.chats)) == (0, 0)
        assert "small-1 is to grade 50 passages, about" in err
        assert "(about $" in err
        status, _, _ = run(capsys, file, "--evaluator", "llm", "--no-plot")
        assert (status, len(server.chats)) == (0, 50)
        status, _, _ = run(capsys, file, "--evaluator", "llm", "--no-plot", "--max-web", "0.6")
        assert (status, len(server.chats)) == (0, 50)
    written = load_calibration(Path(".crag/calibration.json"))
    assert written.evaluator.model == "small-1"
    assert written.evaluator.prompt
    assert (written.figures["auc"], written.lines) == (1.0, {})


def test_a_grader_that_says_the_same_of_everything_writes_nothing_unless_asked(tmp_path, capsys, monkeypatch):
    """F16"""
    file = str(labels.write(tmp_path / "l.jsonl", labels.rows()))
    with OpenAIServer("0.7") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        status, out, _ = run(capsys, file, "--evaluator", "llm", "--no-plot")
        assert status == 1
        assert "Not met    answerable and unanswerable questions cannot be separated" in out
        assert "20 of 20 verdicts are correct: nearly nothing decides" in out
        assert not Path(".crag/calibration.json").exists()
        assert run(capsys, file, "--evaluator", "llm", "--no-plot", "--write-anyway")[0] == 1
        assert Path(".crag/calibration.json").exists()


def test_a_model_that_cannot_be_read_stops_after_three_calls(tmp_path, capsys, monkeypatch):
    file = str(labels.write(tmp_path / "l.jsonl", labels.rows()))
    with OpenAIServer("I would rather not say.") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        status, _, err = run(capsys, file, "--evaluator", "llm")
        assert (status, len(server.chats)) == (1, 3)
    assert "no passage could be graded: " in err


def test_a_question_set_is_run_on_the_knowledge_base(tmp_path, sample_kb, capsys):
    sample = Path(__file__).parents[2] / "data" / "questions.jsonl"
    rows = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["in_kb"]][:6] + [row for row in rows if not row["in_kb"]][:6]
    file = str(labels.write(tmp_path / "q.jsonl", rows))
    status, out, _ = run(capsys, file, "--kb", str(sample_kb), "--json", "--no-plot", "--no-fit")
    told = json.loads(out)
    assert status == 0
    assert told["data"]["answerable"] >= 4
    assert told["data"]["unanswerable"] >= 6
    assert told["figures"]["fit"]["better"] is False


def test_records_of_a_benchmark_need_their_question_set(tmp_path, capsys):
    texts = ["Refunds take five days.", "Ships need harbours."]
    found = [
        {"id": f"d{n}", "text": text, "origin": "kb", "source": f"{n}.md"} for n, text in enumerate(texts)
    ]
    records = labels.write(
        tmp_path / "records.jsonl",
        [
            {"kind": "provenance", "created": "2024-01-01", "dataset": "q.jsonl"},
            {"kind": "row", "system": "crag", "id": "1", "answer": {"documents": found}, "error": None},
        ],
    )
    status, _, err = run(capsys, str(records))
    assert status == 2
    assert "give both: records.jsonl questions.jsonl" in err
    asked = labels.write(
        tmp_path / "q.jsonl", [{"id": "1", "question": "How long do refunds take?", "gold_ids": ["d0"]}]
    )
    status, out, _ = run(capsys, str(records), str(asked), "--json", "--no-plot")
    assert json.loads(out)["data"]["relevant"] == 1
    told = json.loads(out)["warnings"]
    assert "no unanswerable question: nothing shows where the other ones end; label some" in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json\n", "line 1 is not JSON; one question a line"),
        ("[1]\n", "line 1 is not a JSON object"),
        ('\ufeff\n{"id": 1}\n', "line 2 has neither"),
        ('{"question": "q", "passages": [{"relevant": true}]}', "passages.0.text: field required"),
        ('{"question": " ", "passages": []}', 'has no "question"'),
        ("\n", "no question has passages"),
    ],
)
def test_labels_that_are_none_are_one_line_with_their_place(tmp_path, capsys, text, message):
    path = tmp_path / "l.jsonl"
    path.write_text(text, encoding="utf-8")
    status, out, err = run(capsys, str(path))
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_only_what_answers_may_see_is_learnt_from(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tides.md").write_text("Spring tides come twice a month.", encoding="utf-8")
    (folder / "eggs.md").write_text("Eggs boil for six minutes.", encoding="utf-8")
    ingest([folder], Settings(_env_file=None, kb=tmp_path / "kb"))
    row = {"id": "1", "question": "How often do spring tides come?", "gold_ids": ["tides.md"]}
    asked = str(labels.write(tmp_path / "q.jsonl", [row]))
    flags = (asked, "--kb", str(tmp_path / "kb"), "--json", "--no-plot", "--write-anyway")
    assert json.loads(run(capsys, *flags)[1])["data"]["passages"] == 2
    monkeypatch.setenv("CRAG_WHERE", "source=tides.md")
    assert json.loads(run(capsys, *flags)[1])["data"]["passages"] == 1
    monkeypatch.setenv("CRAG_WHERE", "lang=fr")
    status, _, err = run(capsys, *flags)
    assert status == 2
    assert "no question has passages: " in err
    assert "fr" in err


def test_two_questions_of_one_id_do_not_share_what_was_found_and_one_question_counts_once(tmp_path):
    first = {"id": "1", "question": "How often do spring tides come?", "gold_ids": ["tides.md"]}
    path = labels.write(tmp_path / "q.jsonl", [first, first])
    assert [q.id for q in read_labels([path, path]).gold] == ["1"]
    labels.write(path, [first, first | {"question": "How long do eggs boil?"}])
    with pytest.raises(SettingsError, match=r"line 2: the id '1' names another question"):
        read_labels([path])


@pytest.mark.parametrize(
    ("flags", "written"),
    [
        (["--out", "l.jsonl"], "l.jsonl"),
        (["--out", "c.html"], "c.html"),
        (["--out", "./c.json", "--plot", "c.json"], "c.json"),
        (["--plot", "l.jsonl"], "l.jsonl"),
        (["--grades", "l.jsonl"], "l.jsonl"),
    ],
)
def test_no_file_of_the_command_is_written_over_another(tmp_path, capsys, flags, written):
    before = labels.write(tmp_path / "l.jsonl", labels.rows()).read_bytes()
    status, _, err = run(capsys, "l.jsonl", *flags)
    assert status == 2
    assert err == f"crag: {written} would be written over another file of this command; name another\n"
    assert (tmp_path / "l.jsonl").read_bytes() == before


def test_a_grade_that_a_crash_cut_off_costs_no_other_and_a_file_of_something_else_is_left_alone(tmp_path):
    file, evaluator = tmp_path / "grades.jsonl", model_identity("m")
    questions = [LabelledQuestion(id="1", question="Why?", passages=[LabelledPassage(text="So.")])]
    file.write_text('{"key": "a", "score": 0.5}\n{"key": "b", "sc')

    async def grader(question: str, document: Document) -> Grade:
        return Grade(score=0.9, reason=None)

    def grade() -> list[list[float | None]]:
        return asyncio.run(Grades(file, evaluator).grade(questions, grader, lambda done, total: None, 1))

    assert grade() == [[0.9]]
    assert len(file.read_text().splitlines()) == 2
    assert Grades(file, evaluator).missing(questions) == []
    file.write_text('{"question": "Why?"}\n')
    with pytest.raises(SettingsError, match=r"line 1 is no grade; name another --grades"):
        Grades(file, evaluator)


def test_true_and_false_are_read_as_the_benchmark_reads_them(tmp_path):
    path = labels.write(tmp_path / "q.jsonl", [{"id": "1", "question": "Why?", "in_kb": "否"}])
    assert [q.in_kb for q in read_labels([path]).gold] == [False]
    labels.write(path, [{"id": "1", "question": "Why?", "in_kb": "maybe"}])
    with pytest.raises(SettingsError, match=r"line 1: in_kb is 'maybe', not true or false"):
        read_labels([path])


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--out", ""], "argument --out: nothing is given"),
        (["--out", "a\0b"], "argument --out: 'a\\x00b' holds a character that no name can hold"),
        (["--out", "."], "--out . is a folder; name a file in it"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_anything_is_done(tmp_path, capsys, flags, complaint):
    try:
        status = calibrate.main([str(tmp_path / "none.jsonl"), *flags])
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert complaint in capsys.readouterr().err


def test_shares_are_checked_and_a_missing_file_is_one_line(capsys):
    with pytest.raises(SystemExit) as end:
        calibrate.main(["l.jsonl", "--max-lost", "2"])
    assert end.value.code == 2
    assert "2 is no share; 0.02 is two in a hundred" in capsys.readouterr().err
    assert run(capsys, "none.jsonl")[::2] == (
        2,
        "crag: none.jsonl cannot be read: No such file or directory\n",
    )
