import json
from pathlib import Path
from typing import Any

import pytest
from crag.eval.calibrating.label_files import read_labels
from crag.eval.comparing.plan import in_groups, spread
from crag.eval.data.records import Sample
from crag.eval.data.samples import contradicted, fingerprint, read_samples

from crag.base.errors import SettingsError

DATA = Path(__file__).parents[2] / "data"


def read(tmp_path: Path, text: str | bytes, name: str = "set.jsonl") -> list[Sample]:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_samples(path)


def lines(*rows: dict[str, Any]) -> str:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def test_our_own_form_is_read_with_all_that_is_known(tmp_path: Path) -> None:
    row = {
        "id": 7,
        "question": "What are the metrics?",
        "answers": ["four metrics", ["recall", "precision"]],
        "reference": "Recall and precision.",
        "group": "in_kb",
        "in_kb": True,
        "in_web": False,
        "gold_ids": ["a"],
        "gold_sources": ["kb/en/x.md", "a"],
    }
    assert read(tmp_path, lines(row)) == [
        Sample(
            id="7",
            question="What are the metrics?",
            answers=[["four metrics"], ["recall", "precision"]],
            reference="Recall and precision.",
            lang="en",
            group="in_kb",
            in_kb=True,
            in_web=False,
            answerable=True,
            gold_ids=["a", "kb/en/x.md"],
        )
    ]


def test_present_column_names_of_ragas(tmp_path: Path) -> None:
    row = {
        "user_input": "Who wrote it?",
        "reference": "Ada did.",
        "reference_contexts": ["Ada wrote it."],
        "reference_context_ids": ["d1"],
        "retrieved_contexts": ["of another system"],
        "response": "of another system",
        "synthesizer_name": "single_hop",
    }
    (sample,) = read(tmp_path, lines(row))
    assert (sample.question, sample.reference, sample.group) == ("Who wrote it?", "Ada did.", "single_hop")
    assert (sample.reference_contexts, sample.gold_ids) == (["Ada wrote it."], ["d1"])
    assert sample.answers == []
    assert sample.id.startswith("q-")


@pytest.mark.parametrize("column", [{"ground_truth": "Ada did."}, {"ground_truths": ["Ada did."]}])
def test_former_column_names_of_ragas(tmp_path: Path, column: dict[str, Any]) -> None:
    row = {"question": "Who wrote it?", "answer": "of another system", "contexts": ["theirs"], **column}
    (sample,) = read(tmp_path, lines(row))
    assert (sample.reference, sample.answers, sample.gold_ids) == ("Ada did.", [], [])


def test_former_data_set_dumped_as_columns(tmp_path: Path) -> None:
    columns = {"question": ["One?", "Two?"], "answer": ["x", "y"], "ground_truths": [["1"], ["2"]]}
    samples = read(tmp_path, json.dumps(columns), "set.json")
    assert [(sample.question, sample.reference) for sample in samples] == [("One?", "1"), ("Two?", "2")]


def test_a_json_list_and_a_list_in_a_jsonl_file(tmp_path: Path) -> None:
    rows = json.dumps([{"question": "One?"}, {"question": "Two?"}], indent=2)
    assert len(read(tmp_path, rows, "set.json")) == 2
    assert len(read(tmp_path, rows, "set.jsonl")) == 2


def test_csv_of_a_spreadsheet_with_lists_in_cells(tmp_path: Path) -> None:
    table = (
        "\ufeffid,question,answers,in_kb,reference_contexts\r\n"
        '1,"什么是""RRF""？","[""倒数排名""]",TRUE,"[\'甲\', \'乙\']"\r\n'
        ",,,,\r\n"
        "2,Why?,because,no,\r\n"
    )
    first, second = read(tmp_path, table, "set.csv")
    assert (first.question, first.answers, first.in_kb) == ('什么是"RRF"？', [["倒数排名"]], True)
    assert (first.reference_contexts, first.lang) == (["甲", "乙"], "zh")
    assert (second.id, second.answers, second.in_kb, second.lang) == ("2", [["because"]], False, "en")


def test_bom_blank_lines_crlf_nan_and_line_separators_inside_a_question(tmp_path: Path) -> None:
    first_line = '\ufeff{"question": "One?", "reference": NaN}'
    text = first_line + '\r\n\r\n   \r\n{"question": "A\u2028B?", "in_kb": ""}\r\n'
    first, second = read(tmp_path, text)
    assert (first.reference, first.answerable, first.in_kb) == (None, None, None)
    assert second.question == "A\u2028B?"


def test_a_question_without_id_has_the_same_id_in_every_file(tmp_path: Path) -> None:
    (alone,) = read(tmp_path, lines({"question": "One?"}))
    _, later = read(tmp_path, lines({"question": "Two?"}, {"user_input": " One? "}))
    assert alone.id == later.id


@pytest.mark.parametrize(
    ("row", "answerable"),
    [
        ({"answerable": "false", "answers": ["x"]}, False),
        ({"expect": "abstain"}, False),
        ({"in_kb": False, "in_web": False}, False),
        ({"in_kb": False, "in_web": True}, True),
        ({"in_kb": False}, None),
        ({"in_kb": True}, True),
        ({"reference": "So."}, True),
        ({"expect": "use_kb"}, True),
        ({}, None),
    ],
)
def test_whether_a_refusal_is_right(tmp_path: Path, row: dict[str, Any], answerable: bool | None) -> None:
    assert read(tmp_path, lines({"question": "Why?", **row}))[0].answerable is answerable


def test_questions_called_unanswerable_that_have_an_answer_are_told(tmp_path: Path) -> None:
    samples = read(
        tmp_path,
        lines(
            {"id": "a", "question": "One?", "answers": ["x"], "answerable": False},
            {"id": "b", "question": "Two?", "in_kb": True, "answerable": False},
            {"id": "c", "question": "Three?", "reference": "Nobody knows.", "answerable": False},
            {"id": "d", "question": "Four?", "answers": ["x"]},
        ),
    )
    (told,) = contradicted(samples)
    assert told.startswith("2 questions are called unanswerable")
    assert "a refusal counts as right" in told
    assert told.endswith("(a, b)")
    assert contradicted(samples[2:]) == []


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"group": "all"}, "line 1: a group cannot be called 'all'"),
        ({"group": "lang: en"}, "line 1: a group cannot be called 'lang: en'"),
        ({"group": ["a", "b"]}, "line 1: it is in several groups"),
        ({"answers": [True]}, "answers is neither a text nor a list of texts"),
        ({"id": True}, "its id is neither text nor a number"),
    ],
)
def test_what_would_be_counted_as_something_else_is_refused(
    tmp_path: Path, row: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(SettingsError, match=complaint):
        read(tmp_path, lines({"question": "Why?", **row}))


def test_a_group_with_a_comma_in_its_name_can_be_asked_alone() -> None:
    samples = [Sample(id=group, question="?", group=group) for group in ("a,b", "a", "c")]
    assert [s.id for s in in_groups(samples, "a,b")] == ["a,b"]
    assert [s.id for s in in_groups(samples, "a, c")] == ["a", "c"]


def test_every_bad_line_is_named_in_one_line(tmp_path: Path) -> None:
    text = (
        lines({"id": "a", "question": "One?"})
        + "\n{oops\n"
        + lines(
            {"reference": "no question"},
            {"id": "a", "question": "Two?"},
            {"question": ["a", "conversation"]},
            {"question": "Three?", "in_kb": "maybe"},
            {"question": "Four?", "answers": [{"text": "x"}]},
        )
    )
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, text + "\n[1]\n")
    message = str(refused.value)
    assert "\n" not in message
    for part in (
        "line 2: it is not JSON",
        "line 3: it has no question",
        "line 4: the id 'a' is already on line 1",
        "line 5: it is a conversation",
        "line 6: in_kb is 'maybe', not true or false",
        "line 7: answers is neither a text nor a list of texts",
        "line 8: it is not an object",
    ):
        assert part in message


def test_a_file_of_another_kind_does_not_fill_the_screen(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, "not json\n" * 5000)
    assert "and 4988 more: it is not JSON" in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("什么？".encode("gb18030"), "not UTF-8"),
        (b"", "holds no question"),
        (b"\xff\xfe{\x00", "not UTF-8"),
    ],
)
def test_a_file_that_holds_nothing_readable(tmp_path: Path, content: bytes, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        read(tmp_path, content)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        read_samples(tmp_path / "none.jsonl")


def test_a_thousand_rows_and_the_sample_set(tmp_path: Path) -> None:
    many = read(tmp_path, lines(*({"question": f"第 {n} 个问题？", "reference": "答"} for n in range(1000))))
    assert len({sample.id for sample in many}) == 1000
    assert {sample.lang for sample in many} == {"zh"}
    ours = read_samples(DATA / "questions.jsonl")
    assert len(ours) == 68
    assert sum(sample.answerable is False for sample in ours) == 12


def test_the_fingerprint_is_of_what_is_asked_not_of_the_file(tmp_path: Path) -> None:
    rows = [{"question": "One?", "reference": "1"}, {"question": "Two?"}]
    plain = fingerprint(read(tmp_path, lines(*rows)))
    windows = fingerprint(read(tmp_path, "\ufeff" + lines(*rows).replace("\n", "\r\n\r\n")))
    other = fingerprint(read(tmp_path, lines({"question": "One?", "reference": "2"}, {"question": "Two?"})))
    assert plain == windows != other


def test_a_few_of_many_come_from_every_group() -> None:
    samples = [Sample(id=f"{group}{n}", question="?", group=group) for group in "abc" for n in range(5)]
    assert [sample.id for sample in spread(samples, 4)] == ["a0", "a1", "b0", "c0"]
    assert spread(samples, 99) == samples


def test_what_no_file_can_hold_again_is_read_as_question_marks(tmp_path: Path) -> None:
    text = r'{"id": "\ud800", "question": "What is \udfff?", "answers": [["\ud800 1"]], "group": "\ud83d"}'
    (sample,) = read(tmp_path, text)
    assert (sample.id, sample.question, sample.answers, sample.group) == ("?", "What is ??", [["? 1"]], "?")
    assert len(fingerprint([sample])) == 64


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("set.jsonl", '{"question": "q", "id": ' + "1" * 5000 + "}", "line 1: it is not JSON"),
        ("set.json", '[{"question": "q", "id": ' + "1" * 5000 + "}]", "is not JSON"),
        ("set.csv", "question;answers\nWhat?;x\n", "separates its columns by semicolons"),
        ("set.csv", "question\tanswers\nWhat?\tx\n", "separates its columns by tabs"),
        ("set.csv", "question,question\nWhat?,Why?\n", "two columns named 'question'"),
    ],
)
def test_what_cannot_be_meant_is_one_complaint(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint) as raised:
        read(tmp_path, text, name)
    assert "\n" not in str(raised.value)


def test_an_expectation_that_is_no_word_says_nothing(tmp_path: Path) -> None:
    (sample,) = read(tmp_path, '{"question": "q", "expect": ["use_kb"]}')
    assert (sample.in_kb, sample.answerable) == (None, None)


def test_a_question_without_an_id_has_one_name_in_benchmarks_and_calibrations(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text(lines({"question": " When is low tide? ", "gold_ids": ["tides.md"]}), encoding="utf-8")
    assert read_samples(file)[0].id == "q-09b7ad537452"
    assert read_labels([file]).gold[0].id == "q-09b7ad537452"


def test_a_question_that_no_command_would_take_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, lines({"question": "Short?"}, {"question": "x" * 50_001}))
    assert str(refused.value) == (
        f"{tmp_path / 'set.jsonl'}: line 2: its question has more than 50,000 characters; mend or remove them"
    )
