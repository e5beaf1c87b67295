import csv
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
from crag.eval.comparing.gate import (
    Limit,
    OtherOriginError,
    check_baseline,
    failures,
    parse_limit,
    read_baseline,
    unequal,
)
from crag.eval.comparing.systems import System, parse_system, parse_systems, with_settings
from crag.eval.data.differences import differences
from crag.eval.data.folder import whole
from crag.eval.data.journal import Journal, read_journal
from crag.eval.data.recording import Recorder
from crag.eval.data.records import Estimate, Metric, MetricResult, Provenance, Result, Row, Sample, Score
from crag.eval.reporting.outputs import write_rows
from langchain_core.documents import Document

from crag.base.errors import CragError, SettingsError


def origin(**changed: Any) -> Provenance:
    known: dict[str, Any] = {
        "created": "2026-01-01",
        "dataset": "set.jsonl",
        "dataset_sha256": "d",
        "questions": 2,
        "corpus": "3 passages, sha256 c",
        "web": "off",
        "systems": {"fixed": {"k": "4"}, "crag": {"k": "4", "upper": "0.7"}},
        "models": {"fixed": {"generator": "m"}, "crag": {"generator": "m"}},
    }
    return Provenance(**known | changed)


def failed(key: str, error: str = "no reply") -> Row:
    return Row(system="crag", id=key, answer=None, error=error)


def begun(folder: Path) -> Path:
    with Journal(folder, resume=False) as journal:
        journal.begin(origin())
        journal.row(failed("a"))
        journal.score(Score(system="crag", id="a", metric="faithfulness", value=0.5))
    return folder / "records.jsonl"


def test_what_is_written_is_read_again_and_the_last_word_counts(tmp_path: Path) -> None:
    begun(tmp_path)
    with Journal(tmp_path, resume=True) as journal:
        journal.begin(origin(created="2027-01-01"))
        journal.row(failed("a", "worse"))
    records = read_journal(tmp_path / "records.jsonl")
    assert records.header == origin()
    assert records.rows["crag", "a"].error == "worse"
    assert records.scores["crag", "a", "faithfulness", 0].value == 0.5


def test_a_torn_last_line_is_dropped_with_a_note_and_overwritten(tmp_path: Path) -> None:
    path = begun(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind": "row", "system": "crag", "id": "b", "ans')
    with Journal(tmp_path, resume=True) as journal:
        journal.begin(origin())
        assert journal.records.notes == [
            "the last line of records.jsonl was cut off (49 bytes) and is dropped"
        ]
        journal.row(failed("c"))
    assert path.read_bytes().startswith(whole)
    assert set(read_journal(path).rows) == {("crag", "a"), ("crag", "c")}


def test_a_damaged_line_in_the_middle_is_refused_by_its_number(tmp_path: Path) -> None:
    path = begun(tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "garbage", *lines[1:]]) + "\n")
    with pytest.raises(SettingsError, match="line 2"):
        Journal(tmp_path, resume=True)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "7", "-0.1", "1e999", "[" * 100_000])
def test_an_edited_score_that_is_none_is_refused_by_its_number(tmp_path: Path, value: str) -> None:
    path = begun(tmp_path)
    path.write_text(path.read_text().replace('"value":0.5', f'"value":{value}'))
    with pytest.raises(SettingsError, match="line 3"):
        read_journal(path)


def test_two_journals_in_one_file_are_refused(tmp_path: Path) -> None:
    path = begun(tmp_path)
    path.write_text(path.read_text() + origin(corpus="another").model_dump_json() + "\n")
    with pytest.raises(SettingsError, match="line 4"):
        read_journal(path)


def test_a_journal_cut_off_anywhere_goes_on_with_all_its_whole_lines(tmp_path: Path) -> None:
    whole = begun(tmp_path / "whole").read_bytes()
    folder = tmp_path / "cut"
    folder.mkdir()
    for end in range(len(whole) + 1):
        (folder / "records.jsonl").write_bytes(whole[:end])
        with Journal(folder, resume=True) as journal:
            journal.begin(origin())
            journal.row(failed("new"))
        records = read_journal(folder / "records.jsonl")
        lines = whole[:end].count(b"\n")
        assert (len(records.rows), len(records.scores)) == (1 + (lines > 1), lines > 2)


def test_results_are_never_overwritten(tmp_path: Path) -> None:
    path = begun(tmp_path)
    before = path.read_bytes()
    with pytest.raises(SettingsError, match="--resume"):
        Journal(tmp_path, resume=False)
    assert path.read_bytes() == before


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with (
        Journal(tmp_path, resume=False),
        pytest.raises(CragError, match="another benchmark is writing"),
    ):
        Journal(tmp_path, resume=False)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"dataset_sha256": "e"}, "the questions"),
        ({"corpus": "4 passages"}, "the knowledge base"),
        ({"web": "sha256 w"}, "the web snapshot"),
        (
            {"systems": {"fixed": {"k": "4"}, "crag": {"k": "8", "upper": "0.7"}}},
            "the settings of crag \\(k 4 → 8\\)",
        ),
        ({"systems": {"fixed": {"k": "4"}}}, "the settings of crag \\(not asked\\)"),
        (
            {"models": {"fixed": {"generator": "m"}, "crag": {"generator": "n"}}},
            "the models of crag \\(generator m → n\\)",
        ),
        ({"prompts": {"en/grade": "1"}}, "the prompts en/grade nothing → 1"),
    ],
)
def test_a_run_about_something_else_is_not_resumed(
    tmp_path: Path, changed: dict[str, Any], named: str
) -> None:
    begun(tmp_path)
    with Journal(tmp_path, resume=True) as journal, pytest.raises(SettingsError, match=named):
        journal.begin(origin(**changed))


def test_more_repeats_or_questions_and_newer_packages_go_on(tmp_path: Path) -> None:
    with Journal(tmp_path, resume=False) as journal:
        journal.begin(origin(judge={"model": "j", "repeats": "1"}, versions={"crag": "1"}))
    later = origin(judge={"model": "j", "repeats": "3"}, versions={"crag": "2"}, questions=9)
    with Journal(tmp_path, resume=True) as journal:
        journal.begin(later)
        assert journal.records.notes == ["resumed with other versions of crag"]
    with (
        Journal(tmp_path, resume=True) as journal,
        pytest.raises(SettingsError, match="the judge: model j → k"),
    ):
        journal.begin(origin(judge={"model": "k"}))


# The gate


METRICS = [
    Metric(name="answer_match", meaning="", judged=False),
    Metric(name="waiting", meaning="", judged=False, higher_is_better=False),
]


def result(*means: tuple[str, str, float | None], unscored: int = 0, **changed: Any) -> Result:
    values = [
        MetricResult(
            system=system,
            metric=metric,
            group="all",
            value=Estimate(mean=mean),
            scored=0 if mean is None else 2,
            unscored={"no answer": unscored} if unscored else {},
        )
        for system, metric, mean in means
    ]
    return Result(provenance=origin(**changed), metrics=METRICS, values=values, differences=[], spending=[])


MATCH = Limit("crag", "answer_match", 0.8)


def test_a_mean_at_the_limit_passes_and_below_it_fails_with_both_numbers() -> None:
    assert failures(result(("crag", "answer_match", 0.8)), [MATCH]) == []
    assert failures(result(("crag", "answer_match", 0.79)), [MATCH]) == [
        "crag.answer_match is 0.790, below the limit 0.8"
    ]


@pytest.mark.parametrize("mean", [None, float("nan")])
def test_what_has_no_value_never_passes(mean: float | None) -> None:
    """F10."""
    nothing = result(("crag", "answer_match", mean), unscored=2)
    (floor,) = failures(nothing, [Limit("crag", "answer_match", 0)])
    assert floor == "crag.answer_match has no value (2 rows unscored); nothing is proved"
    good = result(("crag", "answer_match", 0.9))
    (drop,) = failures(good, [], nothing, [Limit("crag", "answer_match", 1)])
    assert "in the baseline has no value" in drop
    assert failures(good, [Limit("fixed", "answer_match", 0)]) == [
        "fixed.answer_match was not measured; nothing is proved"
    ]


@pytest.mark.parametrize(("mean", "scored"), [(-7.0, 2), (1.5, 2), (1.0, 0)])
def test_a_baseline_that_was_edited_into_nonsense_proves_nothing(mean: float, scored: int) -> None:
    baseline, now = result(("crag", "answer_match", mean)), result(("crag", "answer_match", 0.2))
    baseline.values[0].scored = scored
    (reason,) = failures(now, [], baseline, [Limit("crag", "answer_match", 1.0)])
    assert reason.startswith("crag.answer_match in the baseline has no value")


def test_a_baseline_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(result(("crag", "answer_match", 0.5)).model_dump_json(), encoding="utf-8-sig")
    assert read_baseline(path).values[0].value.mean == 0.5


def test_of_many_things_that_changed_some_are_named() -> None:
    before = origin(prompts={f"en/{n}": "1" for n in range(20)})
    (told,) = differences(before, origin(prompts={}), ("prompts",))
    assert told.endswith("en/13 1 → nothing and 14 more")


def test_a_mean_of_the_few_rows_that_could_be_scored_proves_nothing() -> None:
    (reason,) = failures(result(("crag", "answer_match", 1.0), unscored=3), [MATCH])
    assert reason == "crag.answer_match is unscored on 3 of 5 rows; nothing is proved"


def test_a_drop_is_measured_against_the_baseline() -> None:
    baseline, now = result(("crag", "answer_match", 0.9)), result(("crag", "answer_match", 0.8))
    assert failures(now, [], baseline, [Limit("crag", "answer_match", 0.1)]) == []
    assert failures(now, [], baseline, [Limit("crag", "answer_match", 0.05)]) == [
        "crag.answer_match is 0.800, was 0.900: worse by 0.100, more than 0.05"
    ]


def test_where_less_is_better_the_limits_are_turned_round() -> None:
    before, now = result(("crag", "waiting", 0.2)), result(("crag", "waiting", 0.5))
    assert failures(now, [Limit("crag", "waiting", 0.4)]) == ["crag.waiting is 0.500, above the limit 0.4"]
    assert failures(before, [], now, [Limit("crag", "waiting", 0)]) == []
    assert len(failures(now, [], before, [Limit("crag", "waiting", 0.1)])) == 1


@pytest.mark.parametrize(
    "changed", [{"corpus": "x"}, {"dataset_sha256": "x"}, {"web": "x"}, {"questions": 3}]
)
def test_a_baseline_about_something_else_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(OtherOriginError, match="make a new baseline"):
        check_baseline(result(**changed), origin())
    check_baseline(result(models={}, prompts={"en/grade": "2"}), origin())


def test_a_judged_metric_is_compared_only_with_what_the_same_judge_said() -> None:
    judge = {"model": "a", "server": "s", "repeats": "3"}
    baseline = result(judge=judge)
    check_baseline(baseline, origin(judge=judge | {"repeats": "1"}), judged=True)
    check_baseline(baseline, origin(judge=judge | {"model": "b"}))
    with pytest.raises(OtherOriginError, match=r"the judge: model a → b"):
        check_baseline(baseline, origin(judge=judge | {"model": "b"}), judged=True)


def test_means_of_unequal_rows_are_told() -> None:
    drop = Limit("crag", "answer_match", 0.1)
    now, before = result(("crag", "answer_match", 0.8)), result(("crag", "answer_match", 0.8))
    assert unequal(now, before, [drop]) == []
    before.values[0].scored = 9
    (told,) = unequal(now, before, [drop])
    assert told.startswith("crag.answer_match rests on 2 rows, in the baseline on 9")


def test_limits_name_the_last_system_or_the_one_they_say() -> None:
    systems = ["fixed", "crag:upper=0.8"]
    assert parse_limit("answer_match=0.5", "--fail-under", systems, METRICS) == Limit(
        "crag:upper=0.8", "answer_match", 0.5
    )
    assert parse_limit("crag:upper=0.8.waiting=1", "--max-drop", systems, METRICS).metric == "waiting"
    assert parse_limit("fixed.waiting=1", "--max-drop", systems, METRICS).system == "fixed"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("answer_match", "METRIC=NUMBER"),
        ("answer_match=nan", "METRIC=NUMBER"),
        ("answer_match=inf", "METRIC=NUMBER"),
        ("answer_match=2", "from 0 to 1"),
        ("answer_match=-0.1", "from 0 to 1"),
        ("answer_match=80%", "from 0 to 1"),
        ("answer_macth=0.5", "did you mean answer_match"),
        ("batched.answer_match=0.5", "no system batched"),
    ],
)
def test_limits_that_cannot_be_held_are_refused(text: str, complaint: str) -> None:
    """F10."""
    with pytest.raises(SettingsError, match=complaint):
        parse_limit(text, "--fail-under", ["fixed", "crag"], METRICS)


def test_a_baseline_that_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"a": 1}')
    with pytest.raises(SettingsError, match="is not the result"):
        read_baseline(tmp_path / "b.json")


# Systems


def test_systems_with_settings_of_their_own() -> None:
    assert parse_systems("fixed, crag:aggregate=mean,k=8,CRAG_UPPER=0.8 ,batched") == [
        System("fixed", "fixed"),
        System("crag:aggregate=mean,k=8,upper=0.8", "crag", {"aggregate": "mean", "k": "8", "upper": "0.8"}),
        System("batched", "batched"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("crg", "did you mean crag"),
        ("crag:agregate=mean", "did you mean aggregate"),
        ("crag:mean", "not SETTING=VALUE"),
        ("crag:kb=other", "the same for all systems"),
        ("crag:k=8,k=9", "sets k twice"),
        ("crag:openai_api_key=sk-1", "a key must not stand in a system's name"),
    ],
)
def test_systems_that_cannot_be_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        parse_system(text)


def test_a_password_in_a_system_s_name_is_not_said_again() -> None:
    with pytest.raises(SettingsError, match="set CRAG_BASE_URL") as raised:
        parse_system("crag:base_url=http://u:hunter2@host")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "crag:model=sk-TESTSECRET",
        "crag:sk-TESTSECRET",
        "sk-TESTSECRET",
        "crag:web=tvly-TESTSECRET",
        "crag:k=5,checker_model=hf_TESTSECRET",
    ],
)
def test_a_key_in_a_system_s_name_is_refused_and_not_said_again(text: str) -> None:
    """F85."""
    with pytest.raises(SettingsError, match="a key must not stand in a system's name") as refused:
        parse_systems(text)
    assert "TESTSECRET" not in str(refused.value)


def test_the_key_in_use_is_no_name_of_a_model() -> None:
    common = {"_env_file": None, "openai_api_key": "a1b2c3d4e5"}
    with pytest.raises(SettingsError, match="a key must not stand") as refused:
        with_settings(parse_systems("crag:model=a1b2c3d4e5"), common)
    assert "a1b2c3d4e5" not in str(refused.value)


def test_a_model_that_nobody_would_call_is_no_system_of_its_own() -> None:
    systems = parse_systems("crag,crag:grader_model=other")
    with pytest.raises(SettingsError, match=r"so grader_model would change nothing; set OPENAI_API_KEY"):
        with_settings(systems, {"_env_file": None})
    with_settings(systems, {"_env_file": None, "openai_base_url": "http://127.0.0.1:9/v1", "model": "m"})


@pytest.mark.parametrize(
    "text", ["crag:k=5,crag:k=05", "crag:upper=0.8,crag:upper=.80", "crag,crag:k=4", "fixed,fixed:k=4"]
)
def test_systems_that_differ_in_spelling_alone_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="are the same; leave one out"):
        with_settings(parse_systems(text), {"_env_file": None})
    with_settings(parse_systems("crag,crag:k=5,fixed:k=5,batched"), {"_env_file": None})


def test_one_system_twice_or_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="named twice"):
        parse_systems("crag,fixed,crag")
    with pytest.raises(SettingsError, match="no system"):
        parse_systems(" , ")


def test_all_systems_share_their_settings_but_for_what_is_named() -> None:
    systems = parse_systems("fixed,crag,crag:k=8")
    made = with_settings(systems, {"_env_file": None, "k": 6})
    assert made["fixed"] is made["crag"]
    assert (made["crag"].k, made["crag:k=8"].k) == (6, 8)
    with pytest.raises(SettingsError, match="system crag:k=x: CRAG_K"):
        with_settings(parse_systems("crag:k=x"), {"_env_file": None})


def test_a_document_cannot_bring_a_formula_into_the_spreadsheet(tmp_path: Path) -> None:
    rows = [failed("a", "=HYPERLINK(1)")]
    write_rows([Sample(id="a", question="=1+1? 是")], rows, [], METRICS, tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_bytes()
    assert text.startswith(b"\xef\xbb\xbf")
    assert "'=1+1? 是" in text.decode()
    assert "'=HYPERLINK" in text.decode()


@pytest.mark.parametrize("said", [" =1+1", "\n=1+1", "\t1", "＝1+1", "＠SUM(1)", "\u3000-1"])
def test_blanks_and_wide_signs_do_not_hide_a_formula(tmp_path: Path, said: str) -> None:
    write_rows([Sample(id="a", question=said)], [failed("a", "no")], [], METRICS, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["question"] == f"'{said}"


def test_half_a_character_of_a_model_does_not_cost_the_run_its_answers(tmp_path: Path) -> None:
    with Journal(tmp_path, resume=False) as journal:
        journal.begin(origin())
        journal.row(failed("a", "it said \ud83d"))
    assert read_journal(tmp_path / "records.jsonl").rows["crag", "a"].error == "it said ?"


def test_a_full_disk_is_one_line_with_the_remedy_and_leaves_no_half_line(tmp_path: Path) -> None:
    begun(tmp_path)
    size = (tmp_path / "records.jsonl").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, hard))
    try:
        with Journal(tmp_path, resume=True) as journal:
            journal.begin(origin())
            with pytest.raises(CragError, match=r"records\.jsonl: .+; free the disk, then go on by --resume"):
                journal.row(failed("z", "x" * 100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert (tmp_path / "records.jsonl").stat().st_size == size
    assert read_journal(tmp_path / "records.jsonl").notes == []


def test_a_file_that_could_not_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    with whole(report) as path:
        path.write_text("old")

    def fail() -> None:
        with whole(report) as path:
            path.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"report.html": "old"}


def test_a_recording_that_a_crash_cut_off_goes_on_after_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "web.jsonl"
    path.write_text('{"url": "https://a.example/"}\n{"url": "https://b.ex')

    async def nothing(query: str, limit: int) -> list[Document]:
        return []

    Recorder(nothing, path, resume=True)
    assert path.read_text() == '{"url": "https://a.example/"}\n'
