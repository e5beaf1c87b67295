"""`python -m crag.run` as people and programs use it: a process of its own, exit status, both streams."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import ROOT, here, run
from tests.support.openai_server import OpenAIServer, Reply


def graded(answer: str, score: str = "0.9") -> Callable[[list[dict[str, Any]]], str]:
    return lambda messages: (
        score if "(0 to 1)" in messages[-1]["content"] or "0 到 1" in messages[-1]["content"] else answer
    )


def test_help_and_import_load_nothing_heavy_and_need_no_setting() -> None:
    """F55."""
    code = """
import sys
from crag import run
try:
    run.main(["--help"])
except SystemExit as end:
    heavy = {"pydantic", "langchain_core", "langgraph", "chromadb", "openai", "numpy"} & sys.modules.keys()
    print("loaded:", sorted(heavy), "status:", end.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", env={}, timeout=60
    )
    assert done.stdout.endswith("loaded: [] status: 0\n")
    helped = run("--help")
    assert helped.returncode == 0
    assert "python -m crag.ingest" in helped.stdout


def test_an_answer_stands_alone_on_standard_output(sample_kb: Path) -> None:
    done = run("How does HyDE work?", "--kb", str(sample_kb))
    assert done.returncode == 0, done.stderr
    assert "hypothetical" in done.stdout.lower()
    assert "[1]" in done.stdout
    assert "Path" not in done.stdout
    assert "hyde.md" in done.stderr
    assert "retrieve(4) → score(correct, " in done.stderr
    assert "No model is configured" in done.stderr


def test_json_holds_every_promised_key(sample_kb: Path) -> None:
    done = here("什么是 HyDE？", "--kb", str(sample_kb), "--json")
    answer = json.loads(done.stdout)
    assert list(answer) == [
        "question",
        "answer",
        "answered",
        "graph",
        "verdict",
        "overall_score",
        "thresholds",
        "documents",
        "sources",
        "grounded",
        "grounding_reason",
        "search_query",
        "standalone_question",
        "path",
        "path_text",
        "usage",
        "timings",
        "models",
        "warnings",
    ]
    assert answer["question"] == "什么是 HyDE？"
    assert answer["answered"] is True
    assert answer["thresholds"] == {"upper": 0.7, "lower": 0.3, "aggregate": "max", "source": "default"}
    assert answer["sources"][0]["source"].endswith("hyde.md")
    assert answer["usage"]["llm_calls"] == 0
    assert len(answer["documents"]) == 4
    assert set(answer["documents"][0]) == {
        "id",
        "origin",
        "source",
        "title",
        "text",
        "score",
        "reason",
        "kept",
        "page",
        "row",
        "section",
        "start",
        "end",
    }
    source = answer["sources"][0]
    start, end = source["highlights"][0]
    text = next(d["text"] for d in answer["documents"] if d["id"] == source["id"])
    assert text[start:end] in answer["answer"]


@pytest.mark.parametrize("arguments", [("-",), ()])
def test_a_question_comes_from_standard_input(
    arguments: tuple[str, ...], sample_kb: Path, openai_server: Callable[..., OpenAIServer]
) -> None:
    server = openai_server(graded("Reciprocal rank fusion [1]."))
    done = here(
        *arguments,
        "--json",
        stdin="\ufeffWhat is RRF?\n",
        CRAG_KB=str(sample_kb),
        OPENAI_BASE_URL=server.url,
        OPENAI_API_KEY="sk-planted",
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["question"] == "What is RRF?"
    assert answer["usage"]["llm_calls"] == 5
    assert "sk-planted" not in done.stdout + done.stderr


def test_the_stream_adds_up_to_the_answer(
    sample_kb: Path, openai_server: Callable[..., OpenAIServer]
) -> None:
    text = "Reciprocal rank fusion adds one over sixty plus the rank [1]. It needs no scores [9]. " * 4
    server = openai_server(graded(text))
    options = ("What is RRF?", "--kb", str(sample_kb))
    streamed = here(*options, "--stream", OPENAI_BASE_URL=server.url)
    told = json.loads(here(*options, "--json", OPENAI_BASE_URL=server.url).stdout)
    assert streamed.stdout == told["answer"] + "\n"
    assert "[9]" not in streamed.stdout


def test_a_refusal_is_an_answer_with_status_zero(sample_kb: Path) -> None:
    done = here("Who won the 1987 regatta in Trieste?", "--kb", str(sample_kb), "--no-web")
    assert done.returncode == 0
    assert "not found" in done.stdout
    assert "web_search(off)" in done.stderr


def test_where_nothing_was_found_the_verdict_names_no_score(sample_kb: Path) -> None:
    done = here("What is RRF?", "--kb", str(sample_kb), "--no-web", "--where", "source=nowhere.md")
    assert "Documents: they do not speak to the question (nothing was scored)\n" in done.stderr
    assert "Cost     0 model calls, 0 web searches, " in done.stderr


def test_one_search_is_no_plural(sample_kb: Path) -> None:
    snapshot = str(ROOT / "data/web.jsonl")
    done = here(
        "MCP 协议是哪家公司公布的？", "--kb", str(sample_kb), "--web", "snapshot", "--web-snapshot", snapshot
    )
    assert "Cost     0 model calls, 1 web search, " in done.stderr


def test_a_snapshot_answers_what_the_documents_lack(sample_kb: Path) -> None:
    done = here(
        "What is GraphRAG?", "--kb", str(sample_kb), "--web-snapshot", str(ROOT / "data/web.jsonl"), "--json"
    )
    answer = json.loads(done.stdout)
    assert answer["verdict"] in ("incorrect", "ambiguous")
    assert any(
        source["origin"] == "web" and "example.org" in source["source"] for source in answer["sources"]
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        ((), {}, "no question"),
        (("   ",), {}, "no question"),
        (("q", "--upper", "nan"), {}, "CRAG_UPPER"),
        (("q",), {"CRAG_UPPER": "inf"}, "crag: CRAG_UPPER: must be a finite number, not 'inf'"),
        (("q", "--upper", "0.2"), {}, "CRAG_LOWER (0.3) must be below CRAG_UPPER (0.2)"),
        (("q", "--graph", "nope"), {}, "no graph named 'nope'"),
        (("q", "-k", "0"), {}, "CRAG_K"),
        (("q", "--web", "tavily"), {}, "TAVILY_API_KEY"),
        (("q",), {"CRAG_LOWER": "-1"}, "CRAG_LOWER"),
        (("q", "-k", "abc"), {}, "crag: CRAG_K: must be a whole number, not 'abc'"),
        (("q", "--web", "on"), {}, "CRAG_WEB: must be 'auto', 'tavily', 'duckduckgo'"),
        (("q", "--nope"), {}, "crag: unrecognized arguments: --nope; see python -m crag.run --help"),
        (("q", "--web-snapshot", "nofile"), {}, "no web snapshot at nofile; give a JSONL file of title, url"),
    ],
)
def test_wrong_usage_is_one_line_and_status_two(
    arguments: tuple[str, ...], environment: dict[str, str], said: str, tmp_path: Path
) -> None:
    """F10."""
    done = here(*arguments, cwd=tmp_path, **environment)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_a_missing_knowledge_base_is_one_line_and_status_one(tmp_path: Path) -> None:
    done = here("q", "--kb", str(tmp_path / "nowhere"))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert str(tmp_path / "nowhere") in last
    assert "python -m crag.ingest" in last
    assert not (tmp_path / "nowhere").exists()
    assert "Traceback" not in done.stderr


def test_a_failing_model_is_one_line_with_what_was_found(
    sample_kb: Path, openai_server: Callable[..., OpenAIServer]
) -> None:
    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        return "0.9" if "(0 to 1)" in messages[-1]["content"] else Reply("bad key sk-planted", status=401)

    server = openai_server(reply)
    done = here(
        "How does HyDE work?", "--kb", str(sample_kb), OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-planted"
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "hyde.md" in done.stderr or "HyDE" in done.stderr
    assert "OPENAI_API_KEY" in done.stderr.strip().splitlines()[-1]
    assert "sk-planted" not in done.stderr
    assert "Traceback" not in done.stderr


def test_output_survives_a_terminal_without_the_characters(
    sample_kb: Path, openai_server: Callable[..., OpenAIServer]
) -> None:
    """F53."""
    server = openai_server(graded("Yes ✅ 😊 H₂O [1]."))
    done = subprocess.run(
        [sys.executable, "-m", "crag.run", "How does HyDE work?", "--kb", str(sample_kb)],
        env=os.environ | {"PYTHONIOENCODING": "gbk", "OPENAI_BASE_URL": server.url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0
    assert done.stdout.decode("gbk").startswith("Yes ? ? H?O")


def test_a_thread_is_kept_across_processes(sample_kb: Path, tmp_path: Path) -> None:
    threads = tmp_path / "deep" / "threads.sqlite"
    for command, question in ((here, "How does HyDE work?"), (run, "What is RRF?")):
        done = command(
            question, "--kb", str(sample_kb), "--thread", "t1", "--json", CRAG_THREADS=str(threads)
        )
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["question"] == question
        assert len(answer["documents"]) == 4
        assert answer["path"].count("retrieve") == 1
    assert threads.exists()


def test_a_conversation_goes_on_in_another_process(sample_kb: Path, tmp_path: Path) -> None:
    kept = {"CRAG_KB": str(sample_kb), "CRAG_THREADS": str(tmp_path / "threads.sqlite")}
    first = here("How does HyDE work?", "--thread", "work", "--json", **kept)
    second = run("What are its drawbacks?", "--thread", "work", "--route", **kept)
    third = json.loads(here("Thanks!", "--thread", "work", "--route", "--json", **kept).stdout)
    elsewhere = json.loads(here("What are its drawbacks?", "--thread", "other", "--json", **kept).stdout)
    assert json.loads(first.stdout)["standalone_question"] is None
    assert "Asked    What are its drawbacks? (How does HyDE work)" in second.stderr
    assert "hyde.md" in second.stderr
    assert third["path_text"] == "route(direct) → generate(direct)"
    assert third["documents"] == third["sources"] == []
    assert elsewhere["standalone_question"] is None


def test_a_retry_is_asked_for_by_a_flag_and_streams_only_what_was_checked(
    sample_kb: Path, openai_server: Callable[..., OpenAIServer]
) -> None:
    answers = iter(["It is magic [1].", "Reciprocal rank fusion merges lists [1]."])
    checks = iter(
        [
            "RRF merges ranked lists | [1]\nIt is magic | none\nVerdict: not grounded",
            "Reciprocal rank fusion merges lists | [1]\nVerdict: grounded",
        ]
    )

    def reply(messages: list[dict[str, Any]]) -> str:
        system = messages[0]["content"]
        if "check whether an answer" in system:
            return next(checks)
        return "0.9" if "0 to 1" in system else next(answers)

    server = openai_server(reply)
    options = ("--kb", str(sample_kb), "--stream", "--on-ungrounded", "retry")
    done = here("What is RRF?", *options, OPENAI_BASE_URL=server.url)
    assert done.stdout == "Reciprocal rank fusion merges lists [1].\n"
    assert "generate → check(not grounded) → generate(retry) → check(grounded)" in done.stderr


def test_an_unknown_way_with_ungrounded_answers_is_one_line() -> None:
    done = here("Q", "--on-ungrounded", "retrie")
    assert done.returncode == 2
    assert done.stderr == "crag: CRAG_ON_UNGROUNDED: must be 'report' or 'retry', not 'retrie'\n"
