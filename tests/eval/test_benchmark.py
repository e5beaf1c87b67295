"""The benchmark as people run it: real questions, knowledge base and graphs; models only where they cost."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crag.eval.benchmark import main
from crag.eval.comparing.estimate import describe
from crag.eval.comparing.systems import parse_systems, with_settings
from crag.eval.data.journal import read_journal

from tests.support.judge_server import judge, task_of
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.web_servers import SearXNGServer, page

ROOT = Path(__file__).parents[2]
WEB = ROOT / "data" / "web.jsonl"
KEYS = ("CRAG_", "OPENAI_", "TAVILY_", "LANGSMITH_", "LANGCHAIN_")
QUESTIONS = [f"Question number {n} about chunks?" for n in range(8)]

Bench = Callable[..., int]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sample_kb: Path) -> Iterator[Bench]:
    """The command in this process, on the sample knowledge base, with nothing set but what a test sets."""
    for name in list(os.environ):
        if name.startswith(KEYS):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, **environment: str) -> int:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return main(["--kb", str(sample_kb), *map(str, arguments)])

    return run


@pytest.fixture
def eight(tmp_path: Path) -> Path:
    path = tmp_path / "eight.jsonl"
    rows = [{"id": str(n), "question": q, "reference": "So it is."} for n, q in enumerate(QUESTIONS)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def asked(server: OpenAIServer) -> Counter[str]:
    """How often a model was asked to answer each question."""
    return Counter(q for call in server.chats for q in QUESTIONS if q in call.prompt)


def test_fixed_and_crag_on_the_sample_questions_embedded(
    bench: Bench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    flags = ["--limit", 8, "--web-snapshot", WEB, "--out", out]
    assert bench(*flags, "--fail-under", "fixed.accuracy=0.01") == 0
    shown = capfd.readouterr()
    assert "no model is called: everything runs on this machine" in shown.err
    assert "fixed: 8 questions to ask, 0 model calls\n" in shown.err
    assert "crag: 8 questions to ask, 0 model calls, up to 8 web searches\n" in shown.err
    accuracy = next(line for line in shown.out.splitlines() if "| accuracy " in line)
    assert accuracy.count("(n=8)") == 2
    assert "within noise" in accuracy
    assert "web searches" in shown.out

    result = json.loads((out / "result.json").read_text("utf-8"))
    assert result["provenance"]["questions"] == 8
    assert " passages, sha256 " in result["provenance"]["corpus"]
    assert result["provenance"]["web"].startswith("sha256 ")
    assert {spent["system"]: spent["errors"] for spent in result["spending"]} == {"fixed": 0, "crag": 0}
    table = list(csv.DictReader((out / "rows.csv").read_text("utf-8-sig").splitlines()))
    assert len(table) == 16
    assert {row["lang"] for row in table} == {"en", "zh"}
    assert "<html" in (out / "report.html").read_text("utf-8")
    records = read_journal(out / "records.jsonl")
    answers = [row for row in records.rows.values() if row.system == "crag" and row.answer]
    assert all(len(row.context) == sum(d.kept for d in row.answer.documents) for row in answers if row.answer)

    # The same again is refused, goes on with nothing to do, passes its own baseline and fails a higher bar.
    assert bench(*flags) == 2
    assert "--resume" in capfd.readouterr().err
    again = [*flags, "--resume", "--baseline", out / "result.json", "--max-drop", "accuracy=0"]
    assert bench(*again) == 0
    assert "16 of 16 are done already" in capfd.readouterr().err
    assert bench(*again, "--fail-under", "answer_exact=0.9") == 1
    assert "crag: gate: crag.answer_exact is 0.000, below the limit 0.9" in capfd.readouterr().err
    other = json.loads((out / "result.json").read_text("utf-8"))
    other["provenance"]["corpus"] = "another"
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    assert bench(*again, "--baseline", tmp_path / "other.json") == 1
    assert "the knowledge base" in capfd.readouterr().err
    assert bench(*flags, "--resume", "--systems", "fixed,crag:upper=0.9") == 2
    assert "cannot resume" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("systems", "web", "told"),
    [
        ("fixed,crag", {"web": "off"}, True),
        ("fixed,crag", {"web": "snapshot", "web_snapshot": WEB}, False),
        ("fixed", {"web": "off"}, False),
    ],
)
def test_corrections_without_a_web_are_told_before_anything_is_asked(
    systems: str, web: dict[str, Any], told: bool
) -> None:
    chosen = parse_systems(systems)
    each = {system.name: 3 for system in chosen}
    settings = with_settings(chosen, {"_env_file": None, **web})
    lines = describe(chosen, settings, to_ask=each, to_judge=each, judged=[], repeats=1)
    line = "the web is off: corrections can only refuse; --web-snapshot FILE gives them a web"
    assert (line in lines) is told


def test_one_group_is_asked_and_every_change_is_named_after_its_system(
    bench: Bench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    systems = "fixed,crag,crag:aggregate=mean"
    flags = ["--group", "nowhere", "--limit", 2, "--metrics", "refusal_accuracy", "--systems", systems]
    assert bench(*flags, "--out", out, "--web-snapshot", WEB) == 0
    shown = capfd.readouterr()
    heading = next(line for line in shown.out.splitlines() if line.startswith("| metric "))
    assert [cell.strip() for cell in heading.split("|")[2:-1]] == [
        "fixed",
        "crag",
        "crag:aggregate=mean",
        "change, crag",
        "change, crag:aggregate=mean",
    ]
    told = json.loads((out / "result.json").read_text("utf-8"))["provenance"]
    assert (told["dataset"], told["questions"]) == ("questions.jsonl, only nowhere", 2)
    table = list(csv.DictReader((out / "rows.csv").read_text("utf-8-sig").splitlines()))
    assert {(row["group"], row["lang"]) for row in table} == {("nowhere", "en"), ("nowhere", "zh")}


def start(kb: Path, dataset: Path, out: Path, url: str, *flags: str) -> "subprocess.Popen[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith(KEYS)}
    command = [
        sys.executable,
        str(ROOT / "eval" / "benchmark.py"),
        "--kb",
        str(kb),
        "--dataset",
        str(dataset),
    ]
    return subprocess.Popen(
        [*command, "--out", str(out), "--systems", "fixed", "--metrics", "refusal_rate", *flags],
        env=clean | {"OPENAI_BASE_URL": url, "CRAG_CONCURRENCY": "2", "CRAG_WEB": "off"},
        cwd=out.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def wait_for(server: OpenAIServer, calls: int, process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 120
    while len(server.chats) < calls and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def kept(out: Path) -> set[str]:
    return {key for _, key in read_journal(out / "records.jsonl").rows}


def test_a_run_that_is_interrupted_and_then_killed_goes_on_without_asking_twice(
    bench: Bench, eight: Path, tmp_path: Path, sample_kb: Path, openai_server: Callable[..., OpenAIServer]
) -> None:
    """F70."""
    server, out = openai_server("So it is [1].", latency=0.4), tmp_path / "out"

    first = start(sample_kb, eight, out, server.url)
    wait_for(server, 4, first)
    first.send_signal(signal.SIGINT)
    _, told = first.communicate(timeout=60)
    assert first.returncode == 130
    assert "interrupted;" in told
    assert f"--resume --out {out}" in told
    after_interrupt = kept(out)
    assert 2 <= len(after_interrupt) < 8

    second = start(sample_kb, eight, out, server.url, "--resume")
    wait_for(server, len(server.chats) + 2, second)
    second.kill()
    second.communicate(timeout=60)
    before_resume, calls = kept(out), asked(server)
    assert after_interrupt <= before_resume

    flags = ["--dataset", eight, "--out", out, "--systems", "fixed", "--metrics", "refusal_rate", "--resume"]
    server.latency = 0
    assert bench(*flags, OPENAI_BASE_URL=server.url, CRAG_CONCURRENCY="2", CRAG_WEB="off") == 0
    assert kept(out) == {str(n) for n in range(8)}
    later = asked(server) - calls
    assert {QUESTIONS[int(key)] for key in before_resume} & later.keys() == set()
    assert set(later.values()) <= {1}
    # Only what was under way when it was stopped, two questions each time, is paid for again.
    assert sum(asked(server).values()) <= 8 + 2 + 2


def test_a_difficult_judge_leaves_gaps_that_are_counted_and_nothing_is_paid_twice(
    bench: Bench,
    eight: Path,
    tmp_path: Path,
    openai_server: Callable[..., OpenAIServer],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """F69, F71."""
    busy = iter([True] * 3)

    def disturb(messages: list[dict[str, Any]], reply: str) -> "str | Reply | None":
        prompt = str(messages[0]["content"])
        if QUESTIONS[1] in prompt:
            return "I would rather talk about the weather."
        if QUESTIONS[2] in prompt:
            return Reply(reply, delay=3)
        if QUESTIONS[3] in prompt:
            return f"<think>Is it so? {{}}</think>\n```json\n{reply}\n```"
        return Reply("slow down", status=429, headers={"Retry-After": "0"}) if next(busy, False) else None

    judging, answering = openai_server(judge(disturb)), openai_server("So it is [1].")
    out = tmp_path / "out"
    flags = ["--dataset", eight, "--out", out, "--systems", "fixed", "--limit", 5]
    flags += ["--metrics", "context_recall,refusal_rate"]
    environment = {
        "OPENAI_BASE_URL": answering.url,
        "CRAG_JUDGE_BASE_URL": judging.url,
        "CRAG_JUDGE_MODEL": "judge",
        "CRAG_TIMEOUT": "1.5",
        "CRAG_RETRIES": "0",
        "CRAG_WEB": "off",
    }
    assert bench(*flags, **environment) == 0
    shown = capfd.readouterr()
    assert "judge: 0 to 5 calls for context_recall, 1 time(s) each" in shown.err
    values = json.loads((out / "result.json").read_text("utf-8"))["values"]
    recall = next(v for v in values if (v["metric"], v["group"]) == ("context_recall", "all"))
    assert recall["scored"] == 3
    assert sum(recall["unscored"].values()) == 2
    assert "context_recall" in shown.out

    answers, judgements = len(answering.chats), len(judging.chats)
    assert answers == 5
    assert bench(*flags, "--resume") == 0
    assert len(answering.chats) == 5
    new = [call for call in judging.chats[judgements:] if "spring tides" not in call.prompt.lower()]
    # The one that hung is tried again; the one that answered prose would do so again.
    assert {task_of(call.messages) for call in new} == {"ContextRecall"}
    assert all(QUESTIONS[2] in call.prompt for call in new)


def test_a_limit_on_the_cost_stops_and_says_how_to_go_on(
    bench: Bench,
    eight: Path,
    tmp_path: Path,
    openai_server: Callable[..., OpenAIServer],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """F81."""
    server, out = openai_server("So it is [1]."), tmp_path / "out"
    prices = {"CRAG_PRICE_INPUT": "1000", "CRAG_PRICE_OUTPUT": "1000", "CRAG_CONCURRENCY": "1"}
    flags = ["--dataset", eight, "--out", out, "--systems", "fixed", "--metrics", "refusal_rate"]
    limit = ["--max-cost", "0.03"]  # a call costs .012
    assert bench(*flags, *limit, OPENAI_BASE_URL=server.url, CRAG_WEB="off") == 2
    assert "CRAG_PRICE_INPUT" in capfd.readouterr().err
    assert bench(*flags, *limit, **prices) == 1
    told = capfd.readouterr().err
    assert "$0.0360 are spent, which is --max-cost 0.03; 5 answers are missing; go on with: " in told
    assert len(server.chats) == 3
    assert bench(*flags, "--resume", "--max-cost", "1") == 0
    assert len(server.chats) == 8


def test_a_server_that_is_down_is_not_asked_a_thousand_times_and_failures_are_asked_again(
    bench: Bench,
    tmp_path: Path,
    openai_server: Callable[..., OpenAIServer],
    capfd: pytest.CaptureFixture[str],
) -> None:
    many, out = tmp_path / "many.jsonl", tmp_path / "out"
    many.write_text("\n".join(json.dumps({"question": f"Which chunk {n}?"}) for n in range(30)), "utf-8")
    server = openai_server(Reply("sk-TESTSECRET is no key", status=500))
    flags = ["--dataset", many, "--out", out, "--systems", "fixed", "--metrics", "refusal_rate"]
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-TESTSECRET", "CRAG_RETRIES": "0"}
    assert bench(*flags, **environment, CRAG_CONCURRENCY="2", CRAG_WEB="off") == 1
    told = capfd.readouterr().err
    assert "10 questions in a row failed" in told
    assert len(server.chats) <= 12
    assert not any("TESTSECRET" in path.read_text("utf-8") for path in out.glob("*.*"))
    server.reply = lambda messages: "So it is [1]."
    assert bench(*flags, "--resume") == 0
    assert all(row.answer for row in read_journal(out / "records.jsonl").rows.values())


def test_a_live_web_is_refused_or_recorded_once_and_then_searched_in_its_recording(
    bench: Bench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset, record = tmp_path / "egg.jsonl", tmp_path / "recorded.jsonl"
    dataset.write_text('{"id": "egg", "question": "How long must a soft egg boil?", "answers": ["six"]}')
    flags = ["--dataset", dataset, "--systems", "fixed,crag,crag:aggregate=mean", "--metrics", "answer_match"]
    found = page("Eggs", "https://example.org/eggs", "A soft egg must boil for six minutes.")
    with SearXNGServer([found]) as server:
        live = {"CRAG_WEB": "searxng", "CRAG_SEARXNG_URL": server.url}
        assert bench(*flags, "--out", tmp_path / "refused", **live) == 2
        assert "--record-web FILE records it" in capfd.readouterr().err
        assert bench(*flags, "--out", tmp_path / "live", "--record-web", record) == 0
        assert len(server.requests) == 1
        assert bench(*flags, "--out", tmp_path / "again", "--record-web", record) == 2
        assert "holds a recording already" in capfd.readouterr().err
    assert [json.loads(line) for line in record.read_text("utf-8").splitlines()] == [
        {
            "title": "Eggs",
            "url": "https://example.org/eggs",
            "text": "A soft egg must boil for six minutes.",
            "query": "How long must a soft egg boil?",
        }
    ]
    assert bench(*flags, "--out", tmp_path / "replayed", "--web-snapshot", record) == 0
    for out in ("live", "replayed"):
        rows = read_journal(tmp_path / out / "records.jsonl").rows
        answer = rows["crag", "egg"].answer
        assert answer is not None
        assert "six minutes" in answer.answer
        assert answer.usage.web_calls == 1


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--systems", "crg"], "did you mean crag?"),
        (["--dataset", "none.jsonl"], "No such file"),
        (["--metrics", "acuracy"], "did you mean accuracy?"),
        (
            ["--group", "artcle"],
            "no question is in the group artcle; there are article, in_kb, nowhere, web_only",
        ),
        (["--group", ","], "names no group"),
        (["--fail-under", "accuracy=nan"], "METRIC=NUMBER"),
        (["--baseline", "x.json"], "belong together"),
        (["--judge"], "CRAG_JUDGE_MODEL"),
        (["--resume"], "nothing to resume"),
        (["--metrics", ","], "--metrics names no metric"),
        (["--systems", "crag:k=5,crag:k=05"], "the systems crag:k=5 and crag:k=05 are the same"),
        (["--web-snapshot", __file__], "holds no page"),
        (["--record-web", "web.jsonl"], "one live web"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    bench: Bench, flags: list[str], complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert bench(*flags) == 2
    told = capfd.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "flag",
    ["--dataset", "--kb", "--systems", "--metrics", "--group", "--out", "--web-snapshot", "--baseline"],
)
@pytest.mark.parametrize("given", ["", " ", "a\0b", "a\ud800b"])
def test_a_variable_that_is_not_set_and_a_name_that_cannot_be_are_wrong_usage(
    bench: Bench, flag: str, given: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        bench(flag, given)
    assert end.value.code == 2
    told = capfd.readouterr().err
    assert f"argument {flag}: " in told
    assert told.count("\n") == 1


def test_a_report_of_somebody_else_is_not_overwritten(
    bench: Bench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.html"
    report.write_text("mine")
    assert bench("--out", tmp_path) == 2
    assert "holds a report.html of something else; give another --out" in capfd.readouterr().err
    assert report.read_text() == "mine"


def test_help_loads_nothing_heavy() -> None:
    code = """
import sys
from crag.eval import benchmark
try:
    benchmark.main(["--help"])
except SystemExit as end:
    heavy = {"pydantic", "langchain_core", "chromadb", "openai", "numpy", "ragas"} & sys.modules.keys()
    print("loaded:", sorted(heavy), "status:", end.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", env={}, timeout=60
    )
    assert done.stdout.endswith("loaded: [] status: 0\n")
    assert "python eval/benchmark.py --resume" in done.stdout
